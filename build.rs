//! Does three things before the compiler runs. It gives the binary the commit that it is built from,
//! which `hundi --version` prints. It lists the migrations and the console's languages, so that a
//! new one needs only its file.
//!
//! The commit comes from `HUNDI_COMMIT`, else from git. Where there is no repository, as in an
//! archive, set `HUNDI_COMMIT`. Only release builds ask git: in other builds each new commit would
//! compile everything once more.

#[path = "src/console/texts/languages.rs"]
mod languages;

use std::path::Path;
use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

const TEXTS: &str = "src/console/texts";

/// Writes the list that `src/console/texts.rs` includes: the code and the text of each language.
/// Each file in `TEXTS` is named by its language's code.
fn write_languages() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join(TEXTS);
    let written = Path::new(&std::env::var("OUT_DIR")?).join("console_languages.rs");
    Ok(std::fs::write(written, languages::list(&languages::find(&folder)?))?)
}

const MIGRATIONS: &str = "migrations";

/// The text of each migration, in the order of their numbers. Fails where a number is missing or
/// stands twice, as after a merge of two branches that each added one.
fn write_migrations() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join(MIGRATIONS);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        let name = entry?.file_name().into_string().unwrap_or_default();
        // What an editor leaves beside them is no migration.
        if name.ends_with(".sql") {
            names.push(name);
        }
    }
    names.sort();
    let mut list = String::from("&[\n");
    for (index, name) in names.iter().enumerate() {
        let prefix = format!("{:04}_", index + 1);
        if !name.starts_with(&prefix) {
            let wanted = format!("migrations/{prefix}WHAT_IT_DOES.sql");
            return Err(format!("migrations/{name} stands where {wanted} is expected").into());
        }
        list += &format!("    include_str!({:?}),\n", folder.join(name));
    }
    list += "]\n";
    Ok(std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("migrations.rs"), list)?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed={TEXTS}");
    write_languages()?;
    println!("cargo:rerun-if-changed={MIGRATIONS}");
    write_migrations()?;
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=HUNDI_COMMIT");
    let given = std::env::var("HUNDI_COMMIT").ok().filter(|text| !text.is_empty());
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = match given {
        Some(commit) => commit,
        None if is_release => {
            if let Some(path) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
                println!("cargo:rerun-if-changed={path}");
            }
            git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into())
        }
        None => "not a release".into(),
    };
    println!("cargo:rustc-env=HUNDI_BUILD_COMMIT={commit}");
    Ok(())
}
