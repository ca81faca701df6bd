//! Makes the person who runs a command prove who they are, by the operator's password and, if the
//! operator has a second factor, its code.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

use clap::Args;

use super::{ByArgs, error_message};
use crate::app::App;
use crate::config::Config;
use crate::kernel::{Clock, DecidedBy, Now, OperationError, Role, Via};
use crate::operator::four_eyes;
use crate::secrets::{self, KEY_NEEDED};
use crate::services::Services;
use crate::staff::sign_in::{self, Attempt, Place, Proof};
use crate::staff::{self, totp};
use crate::store::{Cost, Store, Tx, migrate};
use crate::{decisions, key_rotation};

/// The longest line that is taken as a password or code.
const LINE_BYTES_MAX: usize = 4_096;

impl ByArgs {
    /// Who decides. If decisions may need a second person (`four_eyes_above`), this asks for the
    /// password as [`ByArgs::proven`] does. Without the password, one person could decide twice,
    /// under two names.
    pub(super) async fn proven_if_four_eyes(&self, app: &App) -> Result<DecidedBy, String> {
        let by = self.decided_by()?;
        match app.state.services.settings.four_eyes_above {
            Some(_) => self.proven(&app.state.store, &app.state.services).await,
            None => Ok(by),
        }
    }

    /// Who decides, after the actor has proven to be that operator. Reads the password from
    /// standard input, and the code from another line if the operator has a second factor.
    pub(super) async fn proven(
        &self,
        store: &Store,
        services: &Arc<Services>,
    ) -> Result<DecidedBy, String> {
        let by = self.decided_by()?;
        if by.actor().is_empty() {
            return Err("say who you are: --actor NAME".into());
        }
        prove(&by, store, services).await
    }

    /// Like [`ByArgs::proven_if_four_eyes`], for a command that cannot wait for a second person:
    /// with `four_eyes_above`, both persons prove now who they are.
    pub(super) async fn both(
        &self,
        approver: &ApproverArgs,
        app: &App,
    ) -> Result<DecidedBy, String> {
        let by = self.decided_by()?;
        if app.state.services.settings.four_eyes_above.is_none() {
            return Ok(by);
        }
        let second = approver.second_person(&by)?;
        let (store, services) = (&app.state.store, &app.state.services);
        let first = self.proven(store, services).await?;
        let second = prove(&second, store, services).await?;
        let judge = move |tx: &mut dyn Tx| four_eyes::require_two(tx, &first, &second);
        store.read(Cost::Point, judge).await.map_err(error_message)
    }

    /// Like [`ByArgs::both`], for a database that takes no writes: nothing is stored of a failed
    /// attempt, and recovery codes are refused, because each may be used only once.
    pub(super) async fn both_without_writing(
        &self,
        approver: &ApproverArgs,
        config: &Config,
    ) -> Result<DecidedBy, String> {
        let by = self.decided_by_for(config)?;
        // An empty database has no operators to compare the actor with.
        if !look(config, |tx| Ok(migrate::schema_version(tx)? > 0)).await? {
            return Ok(by);
        }
        if config.settings.four_eyes_above.is_none() {
            let named = by.clone();
            let judge =
                move |tx: &mut dyn Tx| decisions::require_operator(tx, &named, Role::Operator);
            return look(config, judge).await.map(|()| by);
        }
        let second = approver.second_person(&by)?;
        let first = prove_without_writing(&by, config).await?;
        let second = prove_without_writing(&second, config).await?;
        look(config, move |tx| four_eyes::require_two(tx, &first, &second)).await
    }
}

/// The second person of a command that cannot wait for one.
#[derive(Args, Clone)]
pub struct ApproverArgs {
    /// Who approves it; needed where four_eyes_above is set. The approver's password is asked for
    /// after that of --actor
    #[arg(long, value_name = "NAME")]
    approver: Option<String>,
}

impl ApproverArgs {
    /// The second person, with the reason of the first.
    fn second_person(&self, first: &DecidedBy) -> Result<DecidedBy, String> {
        if first.actor().is_empty() {
            return Err("say who you are: --actor NAME".into());
        }
        let name = self.approver.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let name =
            name.ok_or("this needs two persons at once: name the second with --approver NAME")?;
        DecidedBy::new(name, first.reason())
    }
}

/// Reads one view of the database on a connection of its own, not on the store's lanes.
async fn look<T: Send + 'static>(
    config: &Config,
    work: impl FnOnce(&mut dyn Tx) -> Result<T, OperationError> + Send + 'static,
) -> Result<T, String> {
    let database = config.database.clone();
    let look = tokio::task::spawn_blocking(move || database.examine(|tx| Ok(work(tx))));
    let looked = look.await.map_err(|error| error.to_string())?;
    looked.map_err(|error| error.to_string())?.map_err(error_message)
}

const WRONG: &str = "the name, the password or the code is wrong";

async fn prove_without_writing(by: &DecidedBy, config: &Config) -> Result<DecidedBy, String> {
    let password = read_hidden_line("Password")?;
    let given = secrets::existing_encryption_keys(&config.database, &config.encryption_keys)?;
    let keys = given.ok_or(KEY_NEEDED)?.all();
    let name = staff::name(by.actor()).unwrap_or_default();
    let find = move |tx: &mut dyn Tx| {
        let found = staff::rows::find_by_name(tx, &name)?;
        Ok((found.filter(|found| !found.is_disabled), key_rotation::sealer(tx, &keys)?))
    };
    let (operator, sealer) = look(config, find).await?;
    let code = match &operator {
        Some(operator) if operator.is_totp_confirmed => read_hidden_line("Code")?,
        _ => String::new(),
    };
    let instant = Clock::System.milliseconds() / 1000;
    let compare = tokio::task::spawn_blocking(move || {
        let is_right = sign_in::is_password_right(operator.as_ref(), &password);
        let operator = operator.filter(|_| is_right).ok_or_else(|| WRONG.to_owned())?;
        let is_right = !operator.is_totp_confirmed
            || totp::fits(&sealer, &operator, &code, instant).map_err(|error| error.to_string())?;
        if is_right { Ok(operator.identity) } else { Err(WRONG.to_owned()) }
    });
    let proven = compare.await.map_err(|error| error.to_string())??;
    Ok(DecidedBy::new(&proven.name, by.reason())?.proven(proven.number, Via::Shell))
}

/// Makes a person prove that they are an operator, and counts the attempt.
async fn prove(
    by: &DecidedBy,
    store: &Store,
    services: &Arc<Services>,
) -> Result<DecidedBy, String> {
    let password = read_hidden_line("Password")?;
    let mut attempt = Attempt {
        name: by.actor().to_owned(),
        password,
        code: String::new(),
        place: Place { address: "shell".into(), browser: String::new() },
    };
    let (asked, shared) = (attempt.clone(), services.clone());
    let count = move |tx: &mut dyn Tx, now: &mut Now| {
        Ok(sign_in::count(tx, now, &shared, &asked.name, &asked.place)?)
    };
    let counted = store
        .write(count)
        .await
        .map_err(error_message)?
        .map_err(|seconds| format!("too many attempts failed: try again in {seconds} s"))?;
    if counted.needs_code() {
        attempt.code = read_hidden_line("Code")?;
    }
    let password = attempt.password.clone();
    let compare = tokio::task::spawn_blocking(move || counted.compare(&password));
    let compared = compare.await.map_err(|error| error.to_string())?;
    let shared = services.clone();
    let prove = move |tx: &mut dyn Tx, now: &mut Now| {
        sign_in::prove(tx, now, &shared, &attempt, &compared, Via::Shell)
    };
    match store.write(prove).await.map_err(error_message)? {
        Proof::Right(operator) => {
            let named = DecidedBy::new(&operator.name, by.reason())?;
            Ok(named.proven(operator.number, Via::Shell))
        }
        Proof::Wrong => Err(WRONG.into()),
    }
}

/// Reads a line from standard input. A terminal does not show what is typed.
fn read_hidden_line(what: &str) -> Result<String, String> {
    let is_terminal = std::io::stdin().is_terminal();
    let echo = |word: &str| {
        if is_terminal {
            // Without stty, the line is visible as it is typed.
            let _ = Command::new("stty").arg(word).stdin(Stdio::inherit()).status();
        }
    };
    if is_terminal {
        let _ = write!(std::io::stderr(), "{what}: ");
    }
    echo("-echo");
    let line = line_of(&mut std::io::stdin().lock(), what);
    echo("echo");
    if is_terminal {
        let _ = writeln!(std::io::stderr());
    }
    line
}

/// The next line, without its end. Of a line that is too long, only one byte more than
/// [`LINE_BYTES_MAX`] is read.
fn line_of(input: &mut impl BufRead, what: &str) -> Result<String, String> {
    let unread = |error: &dyn std::fmt::Display| format!("the {what} cannot be read: {error}");
    let mut line = Vec::new();
    let read = input.take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
    read.map_err(|error| unread(&error))?;
    if line.len() > LINE_BYTES_MAX {
        return Err(format!("the {what} is too long"));
    }
    let line = String::from_utf8(line).map_err(|error| unread(&error))?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_line_that_is_too_long_only_so_much_is_read() {
        let mut two = "right\r\n123456\n".as_bytes();
        assert_eq!(line_of(&mut two, "Password"), Ok("right".into()));
        assert_eq!(line_of(&mut two, "Code"), Ok("123456".into()));
        assert_eq!(line_of(&mut two, "Code"), Ok(String::new()));
        let longest = "a".repeat(LINE_BYTES_MAX - 1);
        for end in ["", "\n"] {
            let text = format!("{longest}{end}");
            assert_eq!(line_of(&mut text.as_bytes(), "Password"), Ok(longest.clone()));
        }
        // A letter of two bytes lies across the limit.
        let long = format!("a{}\n", "é".repeat(LINE_BYTES_MAX));
        let mut rest = long.as_bytes();
        let told = line_of(&mut rest, "Password");
        assert_eq!(told, Err("the Password is too long".into()));
        assert_eq!(long.len() - rest.len(), LINE_BYTES_MAX + 1);
        assert!(line_of(&mut &b"\xff\n"[..], "Password").is_err());
    }
}
