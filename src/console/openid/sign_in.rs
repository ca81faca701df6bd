//! The two routes of a sign-in at a provider: to it, and back from it.

use http::header::LOCATION;
use http::{HeaderValue, StatusCode};

use super::super::cookies::Cookie;
use super::super::sign_in::{place, shown};
use super::super::visit::{ConsoleRequest, Failure, PageOutcome, is_own_path};
use super::flow::SignInFlow;
use super::provider::ProviderError;
use super::token::ProviderPerson;
use crate::http::reply;
use crate::kernel::{StoreError, system_random};
use crate::staff::provider_links::{self, OutsideSignIn, Vouched};
use crate::staff::sessions::Token;
use crate::staff::sign_in;
use crate::store::Cost;

/// Where the provider sends browsers back to. This address of the console has to be registered at
/// the provider.
const DONE_PATH: &str = "/console/sign_in/oidc/done";

fn redirect_uri(asked: &ConsoleRequest) -> Result<String, Failure> {
    let own = asked.console.origins.asked(&asked.headers).ok_or(Failure::NotFound)?;
    Ok(format!("{own}{DONE_PATH}"))
}

/// Sends the browser to the provider, with a cookie to which the way back is bound.
pub async fn begin(asked: ConsoleRequest) -> PageOutcome {
    let Some(openid) = &asked.console.openid else { return Err(Failure::NotFound) };
    let token = Token::make(system_random().map_err(StoreError::Broken)?);
    let next = asked.query("next");
    let next = if is_own_path(next) { next } else { "" };
    let flow = SignInFlow::begin(&asked.services().sealer, token.as_str(), asked.instant(), next);
    let address = openid.address(&flow, &redirect_uri(&asked)?, asked.instant()).await;
    let location = match address.map(|address| HeaderValue::from_str(&address)) {
        Ok(Ok(location)) => location,
        Ok(Err(_)) => return failed(asked, unreadable()).await,
        Err(error) => return failed(asked, error).await,
    };
    let status = StatusCode::SEE_OTHER.as_u16();
    let mut reply = reply::reply(status, "text/plain; charset=utf-8", Vec::new());
    reply.headers_mut().insert(LOCATION, location);
    asked.set_cookie(&mut reply, Cookie::Provider, token.as_str());
    Ok(reply)
}

fn unreadable() -> ProviderError {
    ProviderError::Unavailable("the provider's address cannot be read".into())
}

/// Handles the browser's return from the provider. The sign-in goes on only within ten minutes, and
/// only in the browser in which it began.
pub async fn done(asked: ConsoleRequest) -> PageOutcome {
    let mut reply = answered(&asked).await?;
    asked.remove_cookie(&mut reply, Cookie::Provider);
    Ok(reply)
}

async fn answered(asked: &ConsoleRequest) -> PageOutcome {
    let Some(openid) = &asked.console.openid else { return Err(Failure::NotFound) };
    let (place, instant) = (place(asked), asked.instant());
    let token = Cookie::Provider.read(&asked.console.origins, &asked.headers);
    let resumed = token.and_then(|token| {
        SignInFlow::resume(&asked.services().sealer, &token, asked.query("state"), instant)
    });
    let Some((flow, next)) = resumed else {
        let text = asked.words.get("sign_in.begin_again").to_owned();
        return shown(asked.twin(), StatusCode::FORBIDDEN, Some(text)).await;
    };
    let (services, from) = (asked.app.services.clone(), place.clone());
    let look = asked.app.store.read(Cost::Point, move |tx| {
        Ok(sign_in::address_locked_seconds(tx, &services, &from, instant)?)
    });
    if let Some(seconds) = look.await? {
        let text = asked.words.locked(seconds);
        return shown(asked.twin(), StatusCode::TOO_MANY_REQUESTS, Some(text)).await;
    }
    let (code, issuer) = (asked.query("code"), asked.query("iss"));
    let redeemed = match asked.query("error") {
        "" => openid.redeem(&flow, code, issuer, &redirect_uri(asked)?, instant).await,
        // The person cancelled there, or the provider does not allow the sign-in.
        _ => Err(ProviderError::Refused("the provider signed nobody in".into())),
    };
    let person = match redeemed {
        Ok(person) => person,
        Err(error) => {
            if let ProviderError::Refused(_) = error {
                let services = asked.app.services.clone();
                let counted = asked.app.store.write(move |tx, now| {
                    Ok(sign_in::count_address_failure(tx, now, &services, &place)?)
                });
                counted.await?;
            }
            return failed(asked.twin(), error).await;
        }
    };
    let ProviderPerson { subject, email } = person;
    let vouched = Vouched {
        issuer: openid.settings.issuer.clone(),
        subject: subject.clone(),
        email: email.filter(|_| openid.settings.link_by_email),
        has_second_factor: openid.settings.provider_asks_second_factor(),
    };
    let services = asked.app.services.clone();
    let concluded = asked
        .app
        .store
        .write(move |tx, now| provider_links::sign_in(tx, now, &services, &vouched, &place));
    let (token, operator) = match concluded.await? {
        OutsideSignIn::Done { token, operator } => (token, operator),
        OutsideSignIn::NotLinked => {
            let values = [("issuer", openid.settings.issuer.as_str()), ("subject", &subject)];
            let text = asked.words.with("sign_in.not_linked", values);
            return shown(asked.twin(), StatusCode::FORBIDDEN, Some(text)).await;
        }
        OutsideSignIn::SecondFactorNeeded => {
            let text = asked.words.get("sign_in.factor_needed").to_owned();
            return shown(asked.twin(), StatusCode::FORBIDDEN, Some(text)).await;
        }
    };
    tracing::info!(operator = operator.name, "an operator signed in at the provider");
    let mut reply = asked.go_to(&next)?;
    asked.set_cookie(&mut reply, Cookie::Session, token.as_str());
    asked.remove_cookie(&mut reply, Cookie::Visit);
    Ok(reply)
}

/// The form to sign in, with a text that the sign-in at the provider failed; the log says why.
async fn failed(asked: ConsoleRequest, error: ProviderError) -> PageOutcome {
    let (status, key) = match &error {
        ProviderError::Unavailable(_) => (StatusCode::BAD_GATEWAY, "sign_in.provider_down"),
        ProviderError::Refused(_) => (StatusCode::FORBIDDEN, "sign_in.provider_refused"),
    };
    tracing::warn!(%error, "nobody was signed in at the provider");
    let text = asked.words.get(key).to_owned();
    shown(asked, status, Some(text)).await
}
