//! What each role may do in the console: every route with every role, in test and in live mode.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hundi::console::route::{Method as Verb, RouteAccess};
use hundi::console::routes::routes;
use hundi::staff::sessions::{self, Token};
use hundi::staff::sign_in::Place;
use hundi::staff::{self, Role};

use crate::console::{Browser, console_with};
use crate::support::Server;

const SECOND_FACTOR: &str = "/console/account/second_factor";

/// What varies in a path, as nothing that there is.
fn filled(path: &str) -> String {
    let part = |part: &str| if part.starts_with('{') { "none".into() } else { part.to_owned() };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// A configuration with every part of live mode, in a folder of its own. Nothing answers at its
/// addresses.
fn live_configuration() -> (PathBuf, PathBuf) {
    let folder = std::env::temp_dir().join(format!("hundi-roles-{}", std::process::id()));
    let (lists, bank) = (folder.join("lists"), folder.join("bank"));
    for made in [lists.clone(), bank.join("outbox"), bank.join("inbox")] {
        std::fs::create_dir_all(made).unwrap();
    }
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/screening");
    for name in ["sdn.csv", "alt.csv", "add.csv", "sdn_comments.csv"] {
        std::fs::write(lists.join(name), std::fs::read(fixtures.join(name)).unwrap()).unwrap();
    }
    let list = std::fs::read_to_string(fixtures.join("consolidated.xml")).unwrap();
    let made_at = list.split("dateGenerated=\"").nth(1).unwrap().split('"').next().unwrap();
    let list = list.replacen(made_at, &jiff::Timestamp::now().to_string(), 1);
    std::fs::write(lists.join("consolidated.xml"), list).unwrap();
    let text = format!(
        "[live_chain]\npreset = 'tron'\nendpoints = ['http://127.0.0.1:9/a', \
         'http://127.0.0.2:9/b']\naccount_key = '{}{}'\n\
         [bank]\nfolder = '{}'\ndebit_account_name = 'Example Payments Ltd'\n\
         debit_account_number = '00112233445566'\ndebit_account_ifsc = 'YESB0000001'\n\
         supports_nre = true\n\
         [rates]\n[[rates.inr_per_usd]]\nurl = 'http://127.0.0.1:9/inr'\npointer = '/mid'\n\
         [[rates.usd_per_usdt]]\nurl = 'http://127.0.0.1:9/usdt'\npointer = '/price'\n\
         [checks]\nadapter = 'manual'\n\
         [screening]\nofac_directory = '{lists}'\nun_file = '{lists}/consolidated.xml'\n",
        "xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7",
        "dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd",
        bank.display(),
        lists = lists.display(),
    );
    let config = folder.join("hundi.toml");
    std::fs::write(&config, text).unwrap();
    (folder, config)
}

/// A browser with a session of this role, which may have a second factor.
async fn session<'a>(server: &'a Server, role: Role, has_factor: bool) -> Browser<'a> {
    let begun = server.app.state.store.write(move |tx, now| {
        let operator = staff::rows::find_by_name(tx, role.as_str())?.expect("an operator");
        let place = Place { address: "::1".into(), browser: "a test".into() };
        let number = operator.identity.number;
        Ok(sessions::begin(tx, now, number, &place, has_factor)?)
    });
    let token: Token = begun.await.unwrap();
    let mut browser = Browser::new(server);
    browser.cookies.insert("hundi_session".into(), token.as_str().to_owned());
    browser
}

/// Asks for every route of the router as one role, or as nobody. Below its least role a route
/// answers 403, without a session it leads to the sign-in or answers 401, and otherwise something
/// else. If a second factor is required and missing, nobody gets further than to its page. `mode`
/// is the mode that pages are asked to show.
async fn ask_all(
    server: &Server,
    role: Option<Role>,
    has_factor: bool,
    is_required: bool,
    mode: &str,
) -> usize {
    let mut browser = Browser::new(server);
    let mut refused = 0;
    for route in routes() {
        let path = filled(route.path);
        let page = match role {
            None => "/console/sign_in",
            Some(role) => {
                // Some routes end the session.
                if !browser.cookies.contains_key("hundi_session") {
                    browser = session(server, role, has_factor).await;
                }
                "/console/account"
            }
        };
        let answer = match route.method {
            Verb::Get => browser.get(&format!("{path}?mode={mode}")).await,
            Verb::Post => browser.submit(page, &path, &[("mode", mode)]).await,
        };
        let what = format!(
            "{} {path} as {role:?} in {mode}, second factor {has_factor} of {is_required}: {}",
            route.method.as_str(),
            answer.status
        );
        assert!(answer.status < 500, "{what}: {}", answer.body);
        let (least, role) = match (route.access, role, route.method) {
            (RouteAccess::Anybody, ..) => continue,
            (_, None, Verb::Get) => {
                assert_eq!(answer.status, 303, "{what}");
                assert!(answer.header("location").starts_with("/console/sign_in"), "{what}");
                continue;
            }
            (_, None, Verb::Post) => {
                assert_eq!(answer.status, 401, "{what}");
                continue;
            }
            (RouteAccess::SignedIn, Some(_), _) => {
                assert_ne!(answer.status, 403, "{what}");
                continue;
            }
            (RouteAccess::Role(least), Some(role), _) => (least, role),
        };
        assert_eq!(answer.status == 403, !role.includes(least), "{what}");
        refused += usize::from(answer.status == 403);
        let is_sent_to_set_up = answer.header("location") == SECOND_FACTOR;
        assert_eq!(is_sent_to_set_up, is_required && !has_factor && role.includes(least), "{what}");
    }
    refused
}

/// The matrix of roles and routes, in test mode without and with a required second factor, and in
/// live mode, which always requires one.
#[tokio::test(flavor = "multi_thread")]
async fn every_route_asks_for_its_role() {
    let (folder, config) = live_configuration();
    let config = ("CONFIG", config.to_str().unwrap());
    let required = ("HUNDI_CONSOLE_SECOND_FACTOR", "true");
    for (variables, is_live, is_required) in
        [(vec![], false, false), (vec![required], false, true), (vec![config], true, true)]
    {
        let server = console_with(&variables).await;
        assert_eq!(server.app.state.services.is_live_configured(), is_live);
        for mode in if is_live { &["live", "test"][..] } else { &["test"] } {
            ask_all(&server, None, false, is_required, mode).await;
            let mut refused = Vec::new();
            for role in Role::ALL {
                for has_factor in [false, true] {
                    refused
                        .push(ask_all(&server, Some(*role), has_factor, is_required, mode).await);
                }
            }
            // The higher the role, the fewer routes it is refused; an administrator none.
            assert!(refused.is_sorted_by(|one, next| one >= next), "{refused:?}");
            assert!(refused[0] > 0 && refused.last() == Some(&0), "{refused:?}");
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// The rows of the table in docs/console.md that says which role a change takes: its path and the
/// word for who may ask for it.
fn documented() -> BTreeSet<(String, String)> {
    let text = include_str!("../../docs/console.md");
    let table = text.split("| Lowest role | Change |").nth(1).expect("a table of the roles");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut found = BTreeSet::new();
    for row in rows {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let role = cells.next().unwrap().trim_matches('`').to_owned();
        let paths = cells.nth(1).expect("a cell with paths");
        for path in paths.split(", ") {
            assert!(found.insert((path.trim_matches('`').to_owned(), role.clone())), "{path}");
        }
    }
    found
}

/// Every change has its row in the documentation, with the role that the code asks for. Pages need
/// a viewer, or only a session.
#[test]
fn the_documented_roles_are_those_of_the_routes() {
    let mut changes = BTreeSet::new();
    for route in routes() {
        let who = match route.access {
            RouteAccess::Anybody => "anybody",
            RouteAccess::SignedIn => "signed in",
            RouteAccess::Role(least) => least.as_str(),
        };
        match route.method {
            Verb::Post => {
                let path = route.path.trim_start_matches("/console").to_owned();
                changes.insert((path, who.to_owned()));
            }
            Verb::Get => assert!(
                ["anybody", "signed in", "viewer"].contains(&who),
                "docs/console.md says that a viewer sees every page: {}",
                route.path
            ),
        }
    }
    assert_eq!(documented(), changes);
}
