//! Asks whoever runs a command to prove who they are: by the operator's password, and the code of a
//! second factor.

use std::io::{BufRead, IsTerminal, Write};
use std::process::{Command, Stdio};

use super::{ByArgs, error_message};
use crate::app::App;
use crate::kernel::{DecidedBy, Now, Via};
use crate::services::Services;
use crate::staff::sign_in::{self, Attempt, Place, Proof};
use crate::store::{Store, Tx};

/// The longest line that is taken as a password or code.
const LINE_BYTES_MAX: usize = 4_096;

impl ByArgs {
    /// Who decides. Where decisions may need a second person (`four_eyes_above`), it asks for the
    /// password: else one person could be both by giving two names.
    pub(super) async fn who(&self, app: &App) -> Result<DecidedBy, String> {
        let by = self.decided_by()?;
        match app.state.services.settings.four_eyes_above {
            Some(_) => self.proven(&app.state.store, &app.state.services).await,
            None => Ok(by),
        }
    }

    /// The actor as an operator who proved to be that. Reads a line from standard input for the
    /// password, and another for the code if the operator has a second factor.
    pub(super) async fn proven(
        &self,
        store: &Store,
        services: &std::sync::Arc<Services>,
    ) -> Result<DecidedBy, String> {
        let by = self.decided_by()?;
        if by.actor().is_empty() {
            return Err("say who you are: --actor NAME".into());
        }
        let password = hidden("Password")?;
        let mut attempt = Attempt {
            name: by.actor().to_owned(),
            password,
            code: String::new(),
            place: Place { address: "shell".into(), browser: String::new() },
        };
        let (asked, shared) = (attempt.clone(), services.clone());
        let count =
            move |tx: &mut dyn Tx, now: &mut Now| Ok(sign_in::count(tx, now, &shared, &asked)?);
        let counted = store
            .write(count)
            .await
            .map_err(error_message)?
            .map_err(|seconds| format!("too many attempts failed: try again in {seconds} s"))?;
        if counted.needs_code() {
            attempt.code = hidden("Code")?;
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
            Proof::Wrong => Err("the name, the password or the code is wrong".into()),
        }
    }
}

/// A line from standard input, which a terminal does not show.
fn hidden(what: &str) -> Result<String, String> {
    let is_terminal = std::io::stdin().is_terminal();
    let echo = |word: &str| {
        if is_terminal {
            // Where there is no stty, the line is shown as it is typed.
            let _ = Command::new("stty").arg(word).stdin(Stdio::inherit()).status();
        }
    };
    if is_terminal {
        let _ = write!(std::io::stderr(), "{what}: ");
    }
    echo("-echo");
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    echo("echo");
    if is_terminal {
        let _ = writeln!(std::io::stderr());
    }
    read.map_err(|error| format!("the {what} cannot be read: {error}"))?;
    if line.len() > LINE_BYTES_MAX {
        return Err(format!("the {what} is too long"));
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
