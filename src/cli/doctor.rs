//! `hundi doctor`: what live mode needs, what of it is configured, and whether each part answers.

use std::path::Path;

use super::{Place, config, environment, print};
use crate::checks::ChecksTable;
use crate::config::Config;
use crate::delivery::send::roots_platform;
use crate::kernel::{Clock, Mode};
use crate::live;
use crate::outbound::Client;
use crate::rates::http::HttpRates;
use crate::screening::lists::Lists;
use crate::work::follow::FollowedChain;

/// Tries every part and prints a table. `Err`, and so exit code 1, where live mode would not start or a part does not answer.
pub async fn run(place: &Place) -> Result<(), String> {
    let config = config(place)?;
    let client = Client::new(roots_platform()).map_err(|error| format!("TLS cannot be set up: {error}"))?;
    let mut faults_count = 0;
    print("part         state        what")?;
    for part in live::parts(&config) {
        let (state, what) = match part.is_configured {
            false => ("missing", format!("write the table [{}]: {}", part.table, part.purpose)),
            true => match part.fault.map_or(Ok(()), Err).and(tried(part.table, &config, &client).await) {
                Ok(what) => ("ok", what),
                Err(fault) => ("fails", fault),
            },
        };
        faults_count += usize::from(state != "ok");
        print(&format!("{:<12} {state:<12} {what}", part.table))?;
    }
    if let Some(chain) = &config.test_chain {
        let (state, what) = match reached(&FollowedChain::new(Mode::Test, chain.clone(), &client)).await {
            Ok(what) => ("ok", what),
            Err(fault) => ("fails", fault),
        };
        faults_count += usize::from(state != "ok");
        print(&format!("{:<12} {state:<12} {what}", "test_chain"))?;
    }
    match faults_count {
        0 => print("live mode starts with this configuration"),
        1 => Err("one part is missing or fails: live mode does not start until it is right".into()),
        count => Err(format!("{count} parts are missing or fail: live mode does not start until they are right")),
    }
}

async fn reached(chain: &FollowedChain) -> Result<String, String> {
    match chain.check().await? {
        true => Ok(format!(
            "{} nodes of {} are of chain {} and know the token",
            chain.nodes.len(),
            chain.settings.name.as_str(),
            chain.settings.chain_id
        )),
        false => Err("no node answers; the log above says why".into()),
    }
}

/// Tries one part that is configured; answers what was seen.
async fn tried(table: &str, config: &Config, client: &Client) -> Result<String, String> {
    let now_seconds = Clock::System.milliseconds() / 1000;
    match table {
        "live_chain" => match &config.live_chain {
            Some(chain) => reached(&FollowedChain::new(Mode::Live, chain.clone(), client)).await,
            None => Err("is missing".into()),
        },
        "bank" => config.bank.as_ref().map_or(Err("is missing".into()), |bank| writable(&bank.folder)),
        "rates" => {
            let settings = config.rates.as_ref().ok_or("is missing")?;
            let rates = HttpRates::new(settings, &environment, client.clone())?;
            let (rate, _) =
                rates.poll(now_seconds, &|_| {}).await.map_err(|refusal| format!("no rate that can be quoted: {}", refusal.as_str()))?;
            Ok(format!("{} INR for 1 USD, {} USD for 1 USDT", rate.mid, rate.usdt_usd))
        }
        "checks" => {
            let table = config.checks.as_ref().ok_or("is missing")?;
            live::account_checks(table, &environment, client)?;
            Ok(match table {
                ChecksTable::Manual {} => "by hand: hundi beneficiaries list, hundi beneficiaries review",
                ChecksTable::Http(_) => "over HTTP; not asked here, because every question is about somebody's account",
            }
            .into())
        }
        "screening" => {
            let lists = Lists::load(config.screening.clone().ok_or("is missing")?)?;
            match lists.why_not_live(now_seconds) {
                Some(reason) => Err(reason),
                None => {
                    let counts = lists.states().into_iter().map(|state| format!("{} {}", state.list.as_str(), state.entries_count));
                    Ok(format!("entries: {}", counts.collect::<Vec<_>>().join(", ")))
                }
            }
        }
        _ => Ok(String::new()),
    }
}

/// Whether files can be written below a folder; one that is not there yet is made at the start.
fn writable(folder: &Path) -> Result<String, String> {
    let existing = folder.ancestors().find(|path| path.exists()).ok_or_else(|| format!("{} has no parent", folder.display()))?;
    let probe = existing.join(format!(".hundi-doctor-{}", std::process::id()));
    std::fs::write(&probe, b"")
        .and_then(|()| std::fs::remove_file(&probe))
        .map_err(|error| format!("{} cannot be written: {error}", existing.display()))?;
    Ok(format!("files can be written to {}", folder.display()))
}
