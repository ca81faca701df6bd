//! Webhook endpoints: their health, their deliveries with the last attempts, and replay.

use super::super::blocks::{
    ConsolePage, PageBlock, PageCell, PageForm, Section, Table, TableLine, age, path_of, short,
    word,
};
use super::super::visit::{Failure, PageOutcome, Visit};
use super::{decide, fact, mode_chips, mode_of, named, scope_chips, scope_of};
use crate::decisions;
use crate::events;
use crate::kernel::id::{Minter, kind};
use crate::kernel::page::Page as ListPage;
use crate::kernel::state::Status;
use crate::kernel::{AnyId, Id, Now, ObjectKind, OperationError, Scope};
use crate::keys;
use crate::oversight::{AccountNames, cut, rows};
use crate::staff::Role;
use crate::store::{Cost, Tx};
use crate::webhooks::replay::{self, Counted, Replay};
use crate::webhooks::rows as hooks;

// The most endpoints in the list, deliveries of an endpoint, and attempts of a delivery that are
// shown.
const ENDPOINTS_MAX: i64 = 500;
const DELIVERIES_MAX: i64 = 50;
const ATTEMPTS_MAX: i64 = 5;
/// If this many deliveries wait, the progress of a replay is not shown: counting takes too long.
const WAITING_MAX: i64 = 10_000;
/// How far back "Deliver what failed" goes, in seconds.
const REPLAYED_SECONDS: i64 = 7 * 86_400;

pub async fn list(visit: Visit) -> PageOutcome {
    let mode = mode_of(&visit);
    let read = visit.app.store.read(Cost::Scan, move |tx| {
        Ok((AccountNames::read(tx)?, rows::endpoints(tx, mode, ENDPOINTS_MAX + 1)?))
    });
    let (accounts, mut found) = read.await?;
    let is_more = cut(&mut found, ENDPOINTS_MAX);
    let words = visit.words;
    let mut page = ConsolePage::new("webhooks", words.get("webhooks.title"));
    page.chips = mode_chips(&visit, mode, "/console/webhooks");
    let columns = ["col.endpoint", "col.status", "#col.failures", "col.backlog", "col.account"];
    let mut table = Table::new(words, words.get("webhooks.title"), &columns, "webhooks.empty");
    let milliseconds = visit.app.store.clock.milliseconds();
    for endpoint in &found {
        let late = endpoint.due_milliseconds.map_or(0, |due| (milliseconds - due) / 1_000);
        let path = path_of(endpoint.id.any());
        table.lines.push(
            TableLine::new(vec![
                PageCell::link(path.clone(), endpoint.url.clone()),
                PageCell::chip(words, Status::as_str(endpoint.status)),
                PageCell::number(endpoint.failures_count),
                if late > 0 { PageCell::Text(age(words, late)) } else { PageCell::none() },
                PageCell::text(accounts.of(endpoint.scope)),
            ])
            .to(path),
        );
    }
    table.tell_more(words, is_more);
    page.still.push(Section::wide("", vec![PageBlock::Table(table)]));
    page.draw(&visit)
}

pub async fn one(visit: Visit) -> PageOutcome {
    let id = named(&visit, ObjectKind::WebhookEndpoint)?;
    let scope = scope_of(&visit, id).await?;
    let read = visit.app.store.read(Cost::Scan, move |tx| {
        let Some(typed) = id.typed() else { return Ok(None) };
        let Some(endpoint) = hooks::find(tx, scope, typed)? else { return Ok(None) };
        let page = ListPage { limit: DELIVERIES_MAX, descending: true, ..ListPage::default() };
        let mut deliveries = Vec::new();
        let (rows, is_more) = hooks::deliveries(tx, typed, &page)?;
        for row in rows {
            let delivery = hooks::read_delivery(row)?;
            let event = events::rows::find(tx, scope, delivery.event_id)?;
            let attempts = hooks::attempts(tx, typed, delivery.id, ATTEMPTS_MAX)?;
            deliveries.push((delivery, event, attempts));
        }
        let queue = hooks::queue(tx, typed)?;
        let replayed = hooks::replay_progress(tx, typed, WAITING_MAX)?;
        Ok(Some((AccountNames::read(tx)?, endpoint, queue, (deliveries, is_more), replayed)))
    });
    let (accounts, endpoint, queue, (deliveries, is_more), replayed) =
        read.await?.ok_or(Failure::NotFound)?;
    let words = visit.words;
    let mut page = ConsolePage::new("webhooks", endpoint.url.clone());
    page.id = Some(id.to_string());
    page.chips = vec![PageCell::chip(words, Status::as_str(endpoint.status))];
    page.chips.extend(scope_chips(&visit, accounts.of(scope), scope));
    let mut facts = vec![
        fact(&visit, "fact.events", PageCell::Text(endpoint.enabled_events.to_list().join(", "))),
        fact(&visit, "fact.created", PageCell::time(endpoint.created)),
    ];
    if let Some(queue) = queue {
        facts.push(fact(&visit, "col.failures", PageCell::number(queue.health.failures_count)));
        let since = queue.health.first_failure_milliseconds.map(|at| at / 1_000);
        facts.push(fact(&visit, "fact.failing_since", PageCell::time_or_none(since)));
    }
    if let Some(replayed) = replayed {
        let began = PageCell::time(replayed.began_milliseconds / 1_000);
        let value = PageCell::Several(vec![super::work::replay_cell(&visit, &replayed), began]);
        facts.push(fact(&visit, "work.replayed", value));
    }
    if let Some(description) = &endpoint.description {
        facts.push(fact(&visit, "fact.description", PageCell::Text(description.clone())));
    }
    page.still.push(Section::half(words.get("person.facts"), vec![PageBlock::Facts(facts)]));
    let can_decide = visit.operator().role.includes(Role::Operator);
    let path = format!("/console/webhooks/{id}/replay");
    if can_decide {
        page.still.push(Section::half(
            words.get("webhooks.replay"),
            vec![PageBlock::Form(replay_form(&visit, &path))],
        ));
    }
    let columns = ["col.event", "col.status", "col.attempts", "col.next", "col.created"];
    let caption = words.get("webhooks.deliveries");
    let mut table = Table::new(words, caption, &columns, "webhooks.no_deliveries");
    for (delivery, event, attempts) in &deliveries {
        let mut tried = Vec::new();
        for attempt in attempts.iter().rev() {
            let answer = match (&attempt.http_status, &attempt.error) {
                (Some(status), _) => status.to_string(),
                (None, Some(error)) => word(words, error),
                (None, None) => "–".to_owned(),
            };
            tried.push(PageCell::Text(format!("{answer} · {} ms", attempt.duration_milliseconds)));
            tried.push(PageCell::time(attempt.attempted_at));
        }
        let what = event.as_ref().map_or_else(
            || PageCell::muted(words.get("webhooks.event_gone")),
            |event| {
                PageCell::Several(vec![
                    PageCell::Code(event.event_type.clone()),
                    PageCell::id(event.linked),
                    PageCell::Muted(short(&event.id.to_string())),
                ])
            },
        );
        let due = delivery.due_milliseconds.map(|due| due / 1_000);
        let mut line = TableLine::new(vec![
            what,
            PageCell::chip(words, delivery.status.as_str()),
            if tried.is_empty() { PageCell::none() } else { PageCell::Several(tried) },
            PageCell::time_or_none(due),
            PageCell::time(delivery.created),
        ]);
        line.pick = can_decide.then(|| delivery.event_id.to_string());
        table.lines.push(line);
    }
    table.tell_more(words, is_more);
    let block = if can_decide {
        let form = PageForm {
            action: path,
            is_change: true,
            title: words.get("webhooks.replay_picked").to_owned(),
            help: String::new(),
            hidden: Vec::new(),
            questions: decide::questions(&visit, &[]),
            buttons: vec![("picked".into(), words.get("act.replay").to_owned(), false)],
        };
        PageBlock::Picked { table, form }
    } else {
        PageBlock::Table(table)
    };
    page.still.push(Section::wide(caption, vec![block]));
    page.draw(&visit)
}

fn replay_form(visit: &Visit, path: &str) -> PageForm {
    PageForm {
        action: path.to_owned(),
        is_change: true,
        title: String::new(),
        help: visit.words.get("webhooks.replay_help").to_owned(),
        hidden: Vec::new(),
        questions: decide::questions(visit, &[]),
        buttons: vec![("failed".into(), visit.words.get("act.replay_failed").to_owned(), false)],
    }
}

/// Delivers events again: those that were ticked, or those of the last seven days that failed.
pub async fn replay(visit: Visit) -> PageOutcome {
    let id = named(&visit, ObjectKind::WebhookEndpoint)?;
    let scope = scope_of(&visit, id).await?;
    let by = decide::decided_by(&visit)?;
    let picked: Vec<Id<kind::Event>> = visit.fields("object").filter_map(Id::parse).collect();
    let wants_failed = visit.field("decision") == "failed";
    if picked.is_empty() && !wants_failed {
        return Err(Failure::told(visit.words.get("decide.nothing_picked")));
    }
    let counted = match wants_failed {
        true => Some(count_failed(&visit, scope, id).await?),
        false => None,
    };
    let carry_out = move |tx: &mut dyn Tx, now: &mut Now| {
        let gone = || OperationError::Declined(format!("{id}: there is no such endpoint"));
        let typed = id.typed().ok_or_else(gone)?;
        let endpoint = hooks::find(tx, scope, typed)?.ok_or_else(gone)?;
        decisions::require_actor_and_reason(&by, scope.mode())?;
        decisions::record(tx, now, &id.to_string(), "replay", &by)?;
        now.enter_account(keys::rows::clock_offset_seconds(tx, scope)?);
        if let Some((until, counted)) = counted {
            return replay::replay_counted(tx, now, &endpoint, failed(until), counted);
        }
        let mut count = 0;
        for event in &picked {
            count += replay::replay(tx, now, &endpoint, Replay::Event(*event))?;
        }
        Ok(count)
    };
    visit.app.store.write(carry_out).await?;
    visit.back_to(&format!("/console/webhooks/{id}"), "notice.replayed")
}

/// What failed in the seven days before a moment of the account's business time.
const fn failed(until: i64) -> Replay {
    Replay::Range { since: until - REPLAYED_SECONDS, until, only_failed: true }
}

/// Counts failed deliveries before the transaction of the decision opens, so that no writes wait
/// for the count. The first value is the end of the range, in the account's business time. For an
/// endpoint that is gone there is no count, and the decision is then declined.
async fn count_failed(
    visit: &Visit,
    scope: Scope,
    id: AnyId,
) -> Result<(i64, Option<Counted>), OperationError> {
    let milliseconds = visit.app.store.clock.milliseconds();
    let count = move |tx: &mut dyn Tx| {
        let mut now = Now::new(milliseconds, Minter::above(0), [0; 32]);
        now.enter_account(keys::rows::clock_offset_seconds(tx, scope)?);
        let until = now.business();
        let endpoint = id.typed().map(|typed| hooks::find(tx, scope, typed)).transpose()?;
        let Some(endpoint) = endpoint.flatten() else { return Ok((until, None)) };
        Ok((until, replay::count_before_transaction(tx, &now, &endpoint, &failed(until))?))
    };
    visit.app.store.read(Cost::Scan, count).await
}
