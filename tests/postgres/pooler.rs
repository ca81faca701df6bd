//! PgBouncer between the service and PostgreSQL: by session it works, by transaction the start is
//! refused with the remedy.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::nodes::home;
use crate::support::postgres::Database;
use crate::support::{steps, until};

const PATIENCE: Duration = Duration::from_secs(60);

/// A pooler that ends with its value.
struct Pooler {
    child: Child,
    folder: std::path::PathBuf,
    address: std::net::SocketAddr,
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Pooler {
    /// Gives connections out in another way from now on.
    fn change(&self, before: &str, after: &str) {
        let settings = self.folder.join("pgbouncer.ini");
        let text = std::fs::read_to_string(&settings).expect("the settings");
        let mode = |mode| format!("pool_mode = {mode}\n");
        std::fs::write(&settings, text.replace(&mode(before), &mode(after))).expect("the settings");
        let reload = Command::new("kill").args(["-HUP", &self.child.id().to_string()]).status();
        assert!(reload.expect("kill").success());
    }
}

/// `None` where the program is not there; tests/postgres/install.sh installs it.
fn start(database: &Database, mode: &str) -> Option<Pooler> {
    let program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"]
        .into_iter()
        .find(|path| std::path::Path::new(path).exists());
    let Some(program) = program else {
        let is_required = std::env::var_os("HUNDI_TEST_POOLER_REQUIRED").is_some();
        assert!(!is_required, "PgBouncer is not installed: run tests/postgres/install.sh");
        println!("skipped: PgBouncer is not installed (tests/postgres/install.sh)");
        return None;
    };
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address");
    drop(free);
    let folder = std::env::temp_dir().join(format!("hundi-pooler-{}", address.port()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let server = database.server_address();
    let settings = folder.join("pgbouncer.ini");
    let text = format!(
        "[databases]\n* = host={} port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
         listen_port = {}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\n\
         default_pool_size = 30\nmax_client_conn = 200\nignore_startup_parameters = \
         extra_float_digits\n",
        server.ip(),
        server.port(),
        address.port()
    );
    std::fs::write(&settings, text).expect("the settings");
    let mut command = Command::new(program);
    command.arg("-q").arg(&settings).stdout(Stdio::null()).stderr(Stdio::null());
    let is_root = std::fs::metadata("/proc/self")
        .is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if is_root {
        // It refuses to run as root.
        command.uid(65_534).gid(65_534);
    }
    let child = command.spawn().expect("pgbouncer starts");
    let pooler = Pooler { child, folder, address };
    until("the pooler to listen", Duration::from_secs(20), || {
        std::net::TcpStream::connect(address).ok()
    });
    Some(pooler)
}

#[test]
fn a_pooler_by_transaction_is_refused_with_the_remedy() {
    let database = Database::fresh();
    let Some(pooler) = start(&database, "transaction") else { return };
    let home = home(&database.url_at(pooler.address));
    let refusal = home.try_start(&[], "127.0.0.1:0").err().expect("the start is refused");
    let said = format!("{refusal}{}", home.log());
    assert!(said.contains("pool_mode = session"), "{said}");
    // At `doctor` too, once.
    let table = home.run(&["doctor"]).stdout;
    assert_eq!(table.matches("pool_mode = session").count(), 1, "{table}");
}

#[test]
fn a_pooler_by_session_works() {
    let database = Database::fresh();
    let Some(pooler) = start(&database, "session") else { return };
    let home = home(&database.url_at(pooler.address)).with("HUNDI_DATABASE_CONNECTIONS", "6");
    let server = home.start();
    let mut client = server.client(&home.key());
    steps::six_steps(&mut client, "100.00");
    assert!(server.is_ready());
}

/// The start found it by session.
#[test]
fn a_pooler_that_becomes_one_by_transaction_is_named_with_the_remedy() {
    let database = Database::fresh();
    let Some(pooler) = start(&database, "session") else { return };
    let home = home(&database.url_at(pooler.address)).with("HUNDI_DATABASE_CONNECTIONS", "6");
    let server = home.start();
    let api_key = home.key();
    steps::six_steps(&mut server.client(&api_key), "100.00");
    pooler.change("session", "transaction");
    database.terminate_connections();
    let make = || steps::sender_once(&mut server.client(&api_key)).expect("an answer").status;
    until("the pooler to be named", PATIENCE, || {
        make();
        home.log().contains("pool_mode = session").then_some(())
    });
    // From then on nothing is written: a statement may be another connection's.
    let ready = || server.client("").get("/readyz");
    until("the node to be out of service", PATIENCE, || (ready().status == 503).then_some(()));
    until("the remedy", PATIENCE, || ready().text().contains("pool_mode = session").then_some(()));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..50).map(|_| server.client(&api_key)).collect();
        let make = |mut client| steps::sender_once(&mut client).expect("an answer").status;
        let made: Vec<_> =
            clients.into_iter().map(|client| scope.spawn(move || make(client))).collect();
        made.into_iter().map(|made| made.join().expect("a status")).collect()
    });
    assert_eq!(statuses, [503; 50]);
    pooler.change("transaction", "session");
    database.terminate_connections();
    until("the node to serve again", PATIENCE, || (make() == 200).then_some(()));
    until("the node to be ready", PATIENCE, || server.is_ready().then_some(()));
}
