//! API keys, which administrators make and revoke. The key itself is shown only in the answer to
//! the form that made it.

use askama::Template;

use super::super::blocks::{PageCell, PageForm, Question, moment, word};
use super::super::frame::{Frame, draw};
use super::super::visit::{Failure, PageOutcome, Visit};
use super::decide;
use crate::kernel::id::kind;
use crate::kernel::{Id, Mode};
use crate::keys::making::{self, KeyRequest};
use crate::keys::{Permissions, rows};
use crate::routes::resource_names;

/// The choices of the form: after how many days the key stops working.
const DAYS: [i64; 5] = [1, 7, 30, 90, 365];
/// The most keys that one form revokes.
const KEYS_MAX: usize = 100;

#[derive(Template)]
#[template(path = "console/key_made.html")]
struct KeyMadePage<'a> {
    frame: Frame<'a>,
    key: String,
    facts: Vec<(&'a str, String)>,
    /// When it expires, as a machine-readable time and as text.
    expires: Option<(String, String)>,
    /// The account's page.
    path: String,
}

/// The form that makes a key for an account. Without `account`, it asks for the account's name.
pub fn form(visit: &Visit, account: Option<&str>) -> PageForm {
    let words = visit.words;
    let ask = |name, key: &str, choices: Vec<(String, String)>| Question {
        choices,
        ..Question::new(name, words.get(key))
    };
    let choice = |value: &str, key: &str| (value.to_owned(), words.get(key).to_owned());
    let modes = modes(visit);
    let modes = modes.map(|mode| (mode.as_str().to_owned(), word(words, mode.as_str())));
    let mut ends = vec![choice("", "keys.no_end")];
    ends.extend(DAYS.map(|days| {
        let count = days.to_string();
        (count.clone(), words.with("keys.days", [("count", count.as_str())]))
    }));
    let access = ["everything", "reading", "these"]
        .map(|access| choice(access, &format!("keys.access_{access}")));
    let mut questions = Vec::new();
    if account.is_none() {
        questions.push(Question { is_required: true, ..ask("account", "col.account", Vec::new()) });
    }
    questions.extend([
        ask("mode", "col.mode", modes.collect()),
        ask("access", "keys.access", access.to_vec()),
        ask("permissions", "keys.permissions", Vec::new()),
        ask("days", "col.expires", ends),
    ]);
    questions.extend(decide::questions(visit, &[]));
    let resources = resource_names().join(", ");
    PageForm {
        action: "/console/keys/make".into(),
        is_change: true,
        title: String::new(),
        help: words.with("keys.help", [("resources", resources.as_str())]),
        hidden: account.map(|account| ("account", account.to_owned())).into_iter().collect(),
        questions,
        buttons: vec![(String::new(), words.get("keys.make").to_owned(), false)],
    }
}

/// The modes that a key can be made for. A live key may move money. So it can be made only once
/// live mode is set up, because the console then requires a second factor.
fn modes(visit: &Visit) -> impl Iterator<Item = Mode> + use<> {
    let is_live = visit.services().is_live_configured();
    [Mode::Test, Mode::Live].into_iter().filter(move |mode| is_live || *mode == Mode::Test)
}

/// The form that revokes the ticked keys of an account.
pub fn revoke_form(visit: &Visit, account_number: i64) -> PageForm {
    let words = visit.words;
    PageForm {
        action: "/console/keys/revoke".into(),
        is_change: true,
        title: words.get("keys.revoke").to_owned(),
        help: String::new(),
        hidden: vec![("back", format!("/console/accounts/{account_number}"))],
        questions: decide::questions(visit, &[]),
        buttons: vec![(String::new(), words.get("keys.revoke").to_owned(), true)],
    }
}

/// What a key made by this form may do.
fn permissions(visit: &Visit) -> Result<Permissions, Failure> {
    let listed = visit.field("permissions").trim();
    let told = |key: &str| Err(Failure::told(visit.words.get(key)));
    match (visit.field("access"), listed.is_empty()) {
        ("these", false) => Permissions::parse(listed, &resource_names()).map_err(Failure::told),
        ("these", true) => told("keys.nothing_listed"),
        // Permissions were listed, but the choice above the list is another one.
        ("everything" | "reading", false) => told("keys.listed_too"),
        ("everything", true) => Ok(Permissions::All),
        ("reading", true) => {
            let names = resource_names().into_iter().filter(|name| *name != "test_helpers");
            Ok(Permissions::Only(names.map(|name| format!("{name}:read")).collect()))
        }
        _ => told("decide.unknown"),
    }
}

pub async fn make(visit: Visit) -> PageOutcome {
    let by = decide::decided_by(&visit)?;
    let words = visit.words;
    let unknown = || Failure::told(words.get("decide.unknown"));
    let account = visit.field("account").trim().to_owned();
    if let Some(fault) = making::account_name_fault(&account) {
        return Err(Failure::told(fault));
    }
    let mode = modes(&visit).find(|mode| mode.as_str() == visit.field("mode"));
    let days = match visit.field("days") {
        "" => None,
        text => Some(text.parse().ok().filter(|days| DAYS.contains(days)).ok_or_else(unknown)?),
    };
    let request = KeyRequest {
        account: account.clone(),
        mode: mode.ok_or_else(unknown)?,
        permissions: permissions(&visit)?,
        expires_at: days.map(|days: i64| visit.instant() + days * 86_400),
    };
    let facts = vec![
        (words.get("col.account"), account.clone()),
        (words.get("col.mode"), word(words, request.mode.as_str())),
        (words.get("col.permissions"), shown(&visit, &request.permissions.to_text())),
    ];
    let expires = request.expires_at.map(moment);
    let made = visit.app.store.write(move |tx, now| {
        let key = making::create_key_by(tx, now, &request, &by)?;
        // The account exists by now; this only answers its number.
        Ok((key, rows::ensure_account(tx, now, &account)?))
    });
    let (key, number) = made.await?;
    let path = format!("/console/accounts/{number}");
    draw(&KeyMadePage { frame: visit.frame("accounts"), key, facts, expires, path })
}

/// Permissions in words.
fn shown(visit: &Visit, permissions: &str) -> String {
    match permissions {
        "" => word(visit.words, "everything"),
        some => some.replace(',', ", "),
    }
}

/// Permissions, as a table shows them.
pub fn shown_cell(visit: &Visit, permissions: &str) -> PageCell {
    match permissions {
        "" => PageCell::Text(word(visit.words, "everything")),
        some => PageCell::Several(listed(some).collect()),
    }
}

/// Named permissions, each in a cell of its own.
pub fn listed(permissions: &str) -> impl Iterator<Item = PageCell> + '_ {
    permissions.split(',').map(|permission| PageCell::Code(permission.to_owned()))
}

pub async fn revoke(visit: Visit) -> PageOutcome {
    let by = decide::decided_by(&visit)?;
    let ids: Option<Vec<Id<kind::ApiKey>>> = visit.fields("object").map(Id::parse).collect();
    let Some(ids) = ids.filter(|ids| !ids.is_empty() && ids.len() <= KEYS_MAX) else {
        return Err(Failure::told(visit.words.get("decide.nothing_picked")));
    };
    let not_revoked = visit.app.store.write(move |tx, now| {
        let mut not_revoked = Vec::new();
        for id in &ids {
            if !making::revoke_key_by(tx, now, *id, &by)? {
                not_revoked.push(id.to_string());
            }
        }
        Ok(not_revoked)
    });
    let not_revoked = not_revoked.await?;
    if not_revoked.is_empty() {
        return visit.back_to(&decide::back(&visit), "notice.key_revoked");
    }
    let ids = not_revoked.join(", ");
    Err(Failure::told(visit.words.with("keys.not_revoked", [("ids", ids.as_str())])))
}
