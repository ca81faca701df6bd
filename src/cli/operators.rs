//! `hundi operators`: who may sign in to the console and decide.

use std::io::Read;

use clap::{Args, Subcommand, ValueEnum};

use super::listing::{ListingArgs, ListingCell, ListingPrinter};
use super::{AdministratorArgs, DatabaseArgs, error_message, open, print};
use crate::console::openid::settings::check_issuer;
use crate::kernel::{Now, system_random};
use crate::operator::four_eyes;
use crate::staff::{self, Role, passwords, provider_links};
use crate::store::{Cost, Tx};

/// Manage the operators: who may sign in to the console
#[derive(Args)]
pub struct Operators {
    #[command(subcommand)]
    command: OperatorsCommand,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleFlag {
    /// Sees everything but full account numbers
    Viewer,
    /// Decides
    Operator,
    /// Also approves what others decided
    Approver,
    /// Also manages keys, operators and settings
    Admin,
}

#[derive(Args)]
struct PasswordArgs {
    /// Read the password from standard input; without it one is made, and printed alone on the
    /// last line
    #[arg(long)]
    password_stdin: bool,
}

#[derive(Subcommand)]
enum OperatorsCommand {
    /// Make an operator
    Create {
        /// The operator's name
        name: String,
        /// What the operator may do
        #[arg(long)]
        role: RoleFlag,
        #[command(flatten)]
        password: PasswordArgs,
        #[command(flatten)]
        by: AdministratorArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// List the operators
    List {
        #[command(flatten)]
        listing: ListingArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Disable an operator, and end their sessions
    Disable {
        /// The operator's name
        name: String,
        #[command(flatten)]
        by: AdministratorArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Link an operator to a person at the OpenID Connect provider, who then signs in there
    Link {
        /// The operator's name
        name: String,
        /// What the provider calls itself, as in `console.oidc.issuer`
        #[arg(long)]
        issuer: String,
        /// The provider's name of the person (`sub`); a refused sign-in shows it
        #[arg(long)]
        subject: String,
        #[command(flatten)]
        by: AdministratorArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Remove the link of an operator, and end their sessions
    Unlink {
        /// The operator's name
        name: String,
        #[command(flatten)]
        by: AdministratorArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Give an operator a new password, remove the second factor and the link to a provider, and
    /// let them sign in again
    Reset {
        /// The operator's name
        name: String,
        #[command(flatten)]
        password: PasswordArgs,
        #[command(flatten)]
        by: AdministratorArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

impl RoleFlag {
    const fn role(self) -> Role {
        match self {
            RoleFlag::Viewer => Role::Viewer,
            RoleFlag::Operator => Role::Operator,
            RoleFlag::Approver => Role::Approver,
            RoleFlag::Admin => Role::Admin,
        }
    }
}

/// A password's hash, and the password itself if it was made here and has to be shown.
struct ChosenPassword {
    hash: String,
    made: Option<String>,
}

impl PasswordArgs {
    fn choose(&self) -> Result<ChosenPassword, String> {
        let (password, is_made) = if self.password_stdin {
            let mut text = String::new();
            std::io::stdin()
                .take(4 * passwords::CHARACTERS_MAX as u64)
                .read_to_string(&mut text)
                .map_err(|error| format!("the password cannot be read: {error}"))?;
            (text.trim_end_matches(['\r', '\n']).to_owned(), false)
        } else {
            (passwords::make(system_random()?), true)
        };
        passwords::judge(&password)?;
        let hash = passwords::hash(&password, system_random()?)?;
        Ok(ChosenPassword { hash, made: is_made.then_some(password) })
    }
}

fn show(what: &str, made: Option<String>) -> Result<(), String> {
    print(what)?;
    match made {
        None => Ok(()),
        Some(password) => {
            print("the password, shown only now:")?;
            print(&password)
        }
    }
}

impl Operators {
    pub async fn run(self) -> Result<(), String> {
        match self.command {
            OperatorsCommand::Create { name, role, password, by, database } => {
                let by = by.decided_by()?;
                let name = staff::name(&name)?;
                let role = role.role();
                let ChosenPassword { hash, made } = password.choose()?;
                let store = open(&database).await?;
                let made_operator =
                    store.write(move |tx, now| staff::create(tx, now, &name, role, &hash, &by));
                let operator = made_operator.await.map_err(error_message)?;
                show(&format!("made the operator {} ({})", operator.name, role.as_str()), made)
            }
            OperatorsCommand::List { listing, database } => {
                let store = open(&database).await?;
                let read = store.read(Cost::Scan, |tx| {
                    let linked = staff::rows::linked(tx)?;
                    Ok((staff::rows::all(tx)?, linked))
                });
                let (all, linked) = read.await.map_err(error_message)?;
                let columns = &["name", "role", "signs_in", "second_factor", "linked", "created"];
                let mut listing = ListingPrinter::begin(listing, columns)?;
                for operator in all {
                    listing.row([
                        operator.identity.name.as_str().into(),
                        operator.identity.role.as_str().into(),
                        (!operator.is_disabled).into(),
                        operator.is_totp_confirmed.into(),
                        linked.contains(&operator.identity.number).into(),
                        ListingCell::Time(operator.created),
                    ])?;
                }
                listing.end()
            }
            OperatorsCommand::Disable { name, by, database } => {
                let by = by.decided_by()?;
                let name = staff::name(&name)?;
                let store = open(&database).await?;
                let shown = name.clone();
                let disable = move |tx: &mut dyn Tx, now: &mut Now| {
                    four_eyes::disable_operator(tx, now, &name, &by)
                };
                let ended = store.write(disable).await.map_err(error_message)?;
                print(&match ended {
                    0 => format!("{shown} can no longer sign in"),
                    ended => format!(
                        "{shown} can no longer sign in; requests by {shown} for a second person's \
                         approval that this ended: {ended}"
                    ),
                })
            }
            OperatorsCommand::Link { name, issuer, subject, by, database } => {
                let by = by.decided_by()?;
                let name = staff::name(&name)?;
                check_issuer(&issuer).map_err(|fault| format!("--issuer {fault}"))?;
                provider_links::judge_subject(&subject)?;
                let store = open(&database).await?;
                let shown = name.clone();
                let link = move |tx: &mut dyn Tx, now: &mut Now| {
                    provider_links::link(tx, now, &name, &issuer, &subject, &by)
                };
                store.write(link).await.map_err(error_message)?;
                print(&format!("{shown} can sign in at the provider"))
            }
            OperatorsCommand::Unlink { name, by, database } => {
                let by = by.decided_by()?;
                let name = staff::name(&name)?;
                let store = open(&database).await?;
                let shown = name.clone();
                let unlink = move |tx: &mut dyn Tx, now: &mut Now| {
                    provider_links::unlink(tx, now, &name, &by)
                };
                store.write(unlink).await.map_err(error_message)?;
                print(&format!("{shown} can no longer sign in at the provider"))
            }
            OperatorsCommand::Reset { name, password, by, database } => {
                let by = by.decided_by()?;
                let name = staff::name(&name)?;
                let ChosenPassword { hash, made } = password.choose()?;
                let store = open(&database).await?;
                let shown = name.clone();
                let reset =
                    store.write(move |tx, now| staff::reset(tx, now, &name, &hash, &by)).await;
                reset.map_err(error_message)?;
                show(&format!("{shown} signs in with a new password"), made)
            }
        }
    }
}
