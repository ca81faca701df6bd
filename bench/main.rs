//! What hundi reaches on this machine, side by side with what bounds it. `cargo bench` prints one
//! table; see README.md.

mod chain;
mod children;
#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/support/postgres.rs"]
mod cluster;
mod console;
mod create;
mod dead;
mod deliveries;
mod deliveries_postgres;
mod get;
mod growth;
mod load;
mod machine;
mod memory;
mod neighbours;
mod payouts;
mod postgres;
mod postgres_script;
mod receiver;
mod rows;
mod screening;
mod server;
mod settled;
mod table;

use table::Table;
use tokio::runtime::Runtime;

const SECTIONS: &[&str] = &[
    "floor",
    "create",
    "get",
    "payouts",
    "deliveries",
    "growth",
    "memory",
    "dead",
    "screening",
    "chain",
    "postgres",
    "deliveries_postgres",
    "neighbours",
    "console",
];

/// How much is done; every number can be made smaller for a first look.
#[derive(Clone)]
pub struct Scale {
    /// Rounds in which compared things take turns.
    pub rounds: usize,
    /// Transfers created in one round.
    pub creations: usize,
    /// How long things measured by time take, in a round.
    pub seconds: f64,
    /// Deliveries that are drained.
    pub deliveries: usize,
    /// Sizes of the databases that are compared.
    pub growth: Vec<usize>,
    pub growth_rounds: usize,
    /// Transfers created in one round of growth; the other figures scale with it.
    pub growth_creations: usize,
    /// Addresses that are watched on a chain, in the databases that are compared.
    pub watched: Vec<usize>,
    /// Blocks that are caught up with in one round.
    pub blocks: u64,
}

impl Scale {
    fn full() -> Scale {
        Scale {
            rounds: 3,
            creations: 24_000,
            seconds: 3.0,
            deliveries: 100_000,
            growth: vec![1_000, 100_000, 1_000_000],
            growth_rounds: 5,
            growth_creations: 8_000,
            watched: vec![1_000, 100_000, 1_000_000],
            blocks: 4_000,
        }
    }
    fn quick() -> Scale {
        Scale {
            rounds: 1,
            creations: 8_000,
            seconds: 1.0,
            deliveries: 10_000,
            growth: vec![1_000, 50_000],
            growth_rounds: 2,
            growth_creations: 3_000,
            watched: vec![1_000, 100_000, 1_000_000],
            blocks: 1_000,
        }
    }
}

const USAGE: &str = "cargo bench -- [SECTION…] [--quick] [--transfers N]
  sections: floor create get payouts deliveries growth memory dead screening chain postgres \
  deliveries_postgres neighbours console; all of them without a name
  --quick          a first look, about two minutes
  --transfers N    transfers in the largest database of growth, 1000000 unless said";

/// What the arguments ask for.
fn read(arguments: &[String]) -> Result<(Scale, Vec<String>), String> {
    let mut scale = if arguments.iter().any(|argument| argument == "--quick") {
        Scale::quick()
    } else {
        Scale::full()
    };
    let mut sections = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // `--bench` is cargo's own.
            "--quick" | "--bench" => {}
            "--transfers" => {
                let count = arguments
                    .next()
                    .and_then(|count| count.parse().ok())
                    .ok_or("--transfers takes a number")?;
                scale.growth.retain(|size| *size < count);
                scale.growth.push(count);
            }
            name if SECTIONS.contains(&name) => sections.push(name.to_owned()),
            other => return Err(format!("{other:?} is not known\n{USAGE}")),
        }
    }
    if sections.is_empty() {
        sections = SECTIONS.iter().map(|name| (*name).to_owned()).collect();
    }
    Ok((scale, sections))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if children::play(&arguments) {
        return;
    }
    let (scale, sections) = match read(&arguments) {
        Ok(asked) => asked,
        Err(message) => {
            eprintln!("{message}");
            std::process::exit(2);
        }
    };
    let mut table = Table::default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    table.add(
        "the machine before the run",
        format!("{:.0} % idle, {cores} cores", machine::idle_share() * 100.0),
        "",
    );
    // One thread drives all load, so that its share of the machine is known and small.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for section in &sections {
        eprintln!("{section} …");
        let run: fn(&Runtime, &Scale, &mut Table) = match section.as_str() {
            "floor" => floor,
            "create" => create::run,
            "get" => get::run,
            "payouts" => payouts::run,
            "deliveries" => deliveries::run,
            "growth" => growth::run,
            "memory" => memory::run,
            "screening" => screening::run,
            "chain" => chain::run,
            "postgres" => postgres::run,
            "deliveries_postgres" => deliveries_postgres::run,
            "neighbours" => neighbours::run,
            "console" => console::run,
            _ => dead::run,
        };
        run(&runtime, &scale, &mut table);
    }
    table.print();
}

/// What the disk allows, as context for everything that is durable.
fn floor(_: &Runtime, scale: &Scale, table: &mut Table) {
    let folder = server::Folder::new("floor");
    let rate = machine::durable_writes_per_second(&folder.0, scale.seconds);
    table.add("fdatasync of 4 KiB, overwritten", format!("{rate:.0}/s"), "");
}
