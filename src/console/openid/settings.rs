//! The table `[console.oidc]` of the configuration.

use serde::Deserialize;

use crate::outbound::OutboundEndpoint;

/// The variable with the client's secret, which is not a key of the settings' file.
pub const SECRET_VARIABLE: &str = "HUNDI_CONSOLE_OIDC_SECRET";
/// The error if a second factor is required, and the table does not say that the provider asks for
/// one.
pub const SECOND_FACTOR_NEEDED: &str = "a second factor is required: write second_factor = \
    \"provider\" into [console.oidc] once the provider asks for one";
/// The most characters of an issuer's address, and of each other text of the table.
pub const TEXT_CHARACTERS_MAX: usize = 255;

/// Who asks for the second factor.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum SecondFactor {
    /// The provider does, as the operator of this service has set up there.
    Provider,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcSettings {
    /// The provider's `issuer`, exactly as the provider writes it, such as
    /// `https://login.example.com/realms/staff`.
    pub issuer: String,
    pub client_id: String,
    /// The provider's name on the button; if it is not set, the issuer's host.
    pub name: Option<String>,
    pub second_factor: Option<SecondFactor>,
    /// The authentication context class (`acr`) that the provider is asked for. Only tokens with
    /// this class are then accepted.
    pub acr: Option<String>,
    /// Whether a person who is not linked yet is linked to the operator whose name is the person's
    /// verified e-mail address.
    #[serde(default)]
    pub link_by_email: bool,
}

impl OidcSettings {
    /// Checks the lengths and the issuer's address, before the provider is asked anything.
    pub fn judge(self) -> Result<OidcSettings, String> {
        check_issuer(&self.issuer).map_err(|fault| format!("console.oidc.issuer {fault}"))?;
        for (name, text) in [
            ("client_id", Some(&self.client_id)),
            ("name", self.name.as_ref()),
            ("acr", self.acr.as_ref()),
        ] {
            let is_text = |text: &String| {
                let is_short = (1..=TEXT_CHARACTERS_MAX).contains(&text.chars().count());
                is_short && !text.chars().any(char::is_control)
            };
            if !text.is_none_or(is_text) {
                return Err(format!(
                    "console.oidc.{name} must have 1 to {TEXT_CHARACTERS_MAX} characters"
                ));
            }
        }
        Ok(self)
    }

    /// Whether the provider asks for the second factor.
    pub const fn provider_asks_second_factor(&self) -> bool {
        matches!(self.second_factor, Some(SecondFactor::Provider))
    }

    /// The provider's name on the button.
    pub fn shown_name(&self) -> String {
        let host = || {
            let url = url::Url::parse(&self.issuer).ok()?;
            url.host_str().map(str::to_owned)
        };
        self.name.clone().or_else(host).unwrap_or_default()
    }
}

/// Checks that a text is an issuer's address: https, or plain http on this machine, and without
/// query and fragment (OpenID Connect Discovery, 3). `Err` says what it must be.
pub fn check_issuer(text: &str) -> Result<(), String> {
    let endpoint = OutboundEndpoint::new(text, None).ok().filter(OutboundEndpoint::keeps_secrets);
    let is_whole = text.len() <= TEXT_CHARACTERS_MAX && !text.contains(['?', '#']);
    match endpoint {
        Some(_) if is_whole => Ok(()),
        _ => Err("must be the https:// address that the provider gives as its issuer, of at most \
                  255 characters"
            .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<OidcSettings, String> {
        toml::from_str::<OidcSettings>(text).map_err(|error| error.to_string())?.judge()
    }

    #[test]
    fn settings_are_judged_before_anything_is_asked() {
        let good = read("issuer = \"https://login.example.com/staff\"\nclient_id = \"hundi\"");
        let good = good.unwrap();
        assert_eq!(good.shown_name(), "login.example.com");
        assert!(!good.provider_asks_second_factor() && !good.link_by_email);
        let stated = read(
            "issuer = \"http://127.0.0.1:9\"\nclient_id = \"hundi\"\nname = \"Staff\"\n\
             second_factor = \"provider\"\nlink_by_email = true",
        );
        let stated = stated.unwrap();
        assert!(stated.provider_asks_second_factor() && stated.shown_name() == "Staff");
        for wrong in [
            "issuer = \"http://login.example.com\"\nclient_id = \"hundi\"",
            "issuer = \"https://login.example.com?x=1\"\nclient_id = \"hundi\"",
            "issuer = \"login.example.com\"\nclient_id = \"hundi\"",
            "issuer = \"https://login.example.com\"\nclient_id = \"\"",
            "issuer = \"https://login.example.com\"",
            "issuer = \"https://login.example.com\"\nclient_id = \"x\"\nsecond_factor = \"no\"",
            "issuer = \"https://login.example.com\"\nclient_id = \"x\"\nclient_secret = \"x\"",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
