//! Who appears on pages and documents: the operator's name, address, licence, logo and colour, for
//! everybody or for one account.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine;
use serde::Deserialize;

use crate::kernel::{Scope, StoreError};
use crate::keys;
use crate::store::Tx;

/// The most characters of a name, an address and a licence.
pub const TEXT_LENGTH_MAX: usize = 100;
/// The largest logo in bytes. The limit is low because each page contains the logo.
pub const LOGO_BYTES_MAX: usize = 12 * 1024;
/// The longest side of a logo in pixels.
pub const LOGO_PIXELS_MAX: u32 = 1024;

/// An issuer as the configuration gives it. What an account's issuer leaves out comes from the
/// issuer for everybody. What the issuer for everybody leaves out comes from [`Issuer::default`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssuerSource {
    pub name: Option<String>,
    pub address: Option<String>,
    pub licence: Option<String>,
    /// The file of a PNG.
    pub logo: Option<PathBuf>,
    /// `#rrggbb`.
    pub colour: Option<String>,
}

/// Who asks for money and says what was paid.
#[derive(Clone, Debug)]
pub struct Issuer {
    pub name: String,
    /// Postal address, in one line.
    pub address: Option<String>,
    /// The licence that it works under, as documents name it.
    pub licence: Option<String>,
    pub logo: Option<Logo>,
    pub colour: Option<Colour>,
}

/// A logo: a PNG.
#[derive(Clone, Debug)]
pub struct Logo {
    pub png: Vec<u8>,
    pub width: u32,
    pub height: u32,
}

/// A colour in sRGB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Colour {
    pub red: u8,
    pub green: u8,
    pub blue: u8,
}

/// The issuer for everybody, and those of accounts that have one of their own.
#[derive(Clone, Debug, Default)]
pub struct Issuers {
    pub default: Issuer,
    pub by_account: BTreeMap<String, Issuer>,
}

impl Default for Issuer {
    fn default() -> Self {
        Issuer { name: "hundi".into(), address: None, licence: None, logo: None, colour: None }
    }
}

impl Issuers {
    /// Reads the settings. `Err` names the wrong setting and says what is wrong with it.
    pub fn read(
        default: IssuerSource,
        by_account: BTreeMap<String, IssuerSource>,
    ) -> Result<Issuers, String> {
        let default = Issuer::default().with("issuer_", default)?;
        let of_account = |(account, source): (String, IssuerSource)| {
            let issuer = default.clone().with(&format!("issuers.{account}."), source)?;
            Ok((account, issuer))
        };
        let by_account = by_account.into_iter().map(of_account).collect::<Result<_, String>>()?;
        Ok(Issuers { default, by_account })
    }
    /// The issuer of an account, by the account's name.
    pub fn of(&self, account: &str) -> &Issuer {
        self.by_account.get(account).unwrap_or(&self.default)
    }
    /// The issuer of an account's pages and documents.
    pub fn of_scope(&self, tx: &mut dyn Tx, scope: Scope) -> Result<&Issuer, StoreError> {
        if self.by_account.is_empty() {
            return Ok(&self.default);
        }
        let name = keys::rows::account_name(tx, scope.account_number())?;
        Ok(self.of(&name.unwrap_or_default()))
    }
}

impl Issuer {
    fn with(mut self, prefix: &str, source: IssuerSource) -> Result<Issuer, String> {
        let text = |key: &str, value| valid_text(&format!("{prefix}{key}"), value);
        if let Some(name) = text("name", source.name)? {
            self.name = name;
        }
        self.address = text("address", source.address)?.or(self.address);
        self.licence = text("licence", source.licence)?.or(self.licence);
        if let Some(path) = source.logo {
            self.logo = Some(Logo::read(&format!("{prefix}logo"), &path)?);
        }
        if let Some(colour) = source.colour {
            let read = Colour::parse(&colour);
            self.colour = Some(
                read.ok_or_else(|| format!("{prefix}colour must be a colour such as #0b57d0"))?,
            );
        }
        Ok(self)
    }
}

/// Checks a text that documents show: 1 to `TEXT_LENGTH_MAX` characters, none of them a control
/// character, and not only blanks. `key` is the setting that the error names.
pub fn valid_text(key: &str, value: Option<String>) -> Result<Option<String>, String> {
    let fits = |text: &String| {
        !text.trim().is_empty()
            && text.chars().count() <= TEXT_LENGTH_MAX
            && !text.chars().any(char::is_control)
    };
    match value {
        Some(text) if !fits(&text) => {
            Err(format!("{key} must have 1 to {TEXT_LENGTH_MAX} characters, all of them printable"))
        }
        value => Ok(value),
    }
}

impl Logo {
    fn read(key: &str, path: &Path) -> Result<Logo, String> {
        let png = std::fs::read(path)
            .map_err(|error| format!("{key} {} cannot be read: {error}", path.display()))?;
        Logo::of_png(png).ok_or_else(|| {
            format!(
                "{key} {} must be a PNG of at most {LOGO_BYTES_MAX} bytes and {LOGO_PIXELS_MAX} \
                 pixels a side",
                path.display()
            )
        })
    }
    /// `None` unless this is a PNG within the limits, and its pixels can be read. The first chunk,
    /// IHDR, has width and height (PNG, third edition).
    pub(crate) fn of_png(png: Vec<u8>) -> Option<Logo> {
        let head: &[u8; 24] = png.first_chunk()?;
        let number = |at: usize| {
            let bytes = head.get(at..at + 4)?.try_into().ok()?;
            let number = u32::from_be_bytes(bytes);
            (1..=LOGO_PIXELS_MAX).contains(&number).then_some(number)
        };
        let is_png = head.starts_with(b"\x89PNG\r\n\x1a\n") && head[12..16] == *b"IHDR";
        let (width, height) = (number(16)?, number(20)?);
        let is_small = png.len() <= LOGO_BYTES_MAX;
        (is_png && is_small && decodes(&png)).then_some(Logo { png, width, height })
    }
    /// The largest width and height that fit into both maxima and keep the logo's proportions, in
    /// the unit of the maxima.
    pub fn fitted(&self, width_max: f32, height_max: f32) -> (f32, f32) {
        let (width, height) = (self.width as f32, self.height as f32);
        let scale = (width_max / width).min(height_max / height);
        (width * scale, height * scale)
    }
    /// The logo as a data URL, to put into a page.
    pub fn data_url(&self) -> String {
        let text = base64::engine::general_purpose::STANDARD.encode(&self.png);
        format!("data:image/png;base64,{text}")
    }
}

/// Whether the pixels can be read. Code that draws the logo into a document relies on that.
fn decodes(png: &[u8]) -> bool {
    let decoder = png::Decoder::new(std::io::Cursor::new(png));
    let Ok(mut reader) = decoder.read_info() else { return false };
    let Some(size) = reader.output_buffer_size() else { return false };
    reader.next_frame(&mut vec![0; size]).is_ok()
}

/// A PNG of one colour, for tests.
#[cfg(test)]
pub fn png_for_test(width: u32, height: u32, pixel: [u8; 4]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgba);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&pixel.repeat((width * height) as usize)).unwrap();
    writer.finish().unwrap();
    file
}

impl Colour {
    /// Reads `#rrggbb`.
    pub fn parse(text: &str) -> Option<Colour> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
        // `from_str_radix` takes a sign.
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let part = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        Some(Colour { red: part(0)?, green: part(2)?, blue: part(4)? })
    }
    /// Relative luminance (WCAG 2.2), 0 to 1.
    fn luminance(self) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(self.red) + 0.7152 * linear(self.green) + 0.0722 * linear(self.blue)
    }
    /// Black or white, whichever has more contrast on this colour. On each colour one of them has
    /// at least 4.5 to 1.
    pub fn text_on_it(self) -> &'static str {
        let luminance = self.luminance();
        if 1.05 / (luminance + 0.05) >= (luminance + 0.05) / 0.05 { "#ffffff" } else { "#000000" }
    }
}

impl std::fmt::Display for Colour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.red, self.green, self.blue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accounts_issuer_overrides_the_default() {
        let source = |name: &str| IssuerSource { name: Some(name.into()), ..Default::default() };
        let default = IssuerSource {
            licence: Some("RBI/1".into()),
            colour: Some("#0B57D0".into()),
            ..source("Example Payments Ltd")
        };
        let own = IssuerSource { colour: Some("#ffcc00".into()), ..source("Acme") };
        let issuers = Issuers::read(default, [("acme".to_owned(), own)].into()).unwrap();
        let (acme, other) = (issuers.of("acme"), issuers.of("default"));
        assert_eq!((acme.name.as_str(), other.name.as_str()), ("Acme", "Example Payments Ltd"));
        assert_eq!(acme.licence.as_deref(), Some("RBI/1"));
        assert_eq!(other.colour.unwrap().to_string(), "#0b57d0");
        assert_eq!(acme.colour.unwrap().text_on_it(), "#000000");
        assert_eq!(other.colour.unwrap().text_on_it(), "#ffffff");
        for (key, source) in [
            ("issuer_name", source(" ")),
            ("issuer_name", source(&"x".repeat(TEXT_LENGTH_MAX + 1))),
            ("issuer_colour", IssuerSource { colour: Some("red".into()), ..Default::default() }),
            (
                "issuer_colour",
                IssuerSource { colour: Some("#+f+f+f".into()), ..Default::default() },
            ),
            ("issuer_logo", IssuerSource { logo: Some("/nowhere".into()), ..Default::default() }),
        ] {
            let refused = Issuers::read(source, BTreeMap::new()).unwrap_err();
            assert!(refused.starts_with(key), "{refused}");
        }
    }

    #[test]
    fn text_on_any_colour_is_legible() {
        for grey in 0..=255 {
            for (red, green, blue) in [(grey, grey, grey), (grey, 0, 0), (0, grey, 255)] {
                let colour = Colour { red, green, blue };
                let text = Colour::parse(colour.text_on_it()).unwrap().luminance();
                let (light, dark) = (colour.luminance().max(text), colour.luminance().min(text));
                assert!((light + 0.05) / (dark + 0.05) >= 4.5, "{colour}");
            }
        }
    }

    #[test]
    fn only_a_small_png_is_a_logo() {
        let mut png = png_for_test(16, 8, [0, 160, 0, 255]);
        let logo = Logo::of_png(png.clone()).unwrap();
        assert_eq!((logo.width, logo.height), (16, 8));
        assert!(logo.data_url().starts_with("data:image/png;base64,iVBOR"));
        for broken in [
            b"<svg xmlns='http://www.w3.org/2000/svg'/>".to_vec(),
            png[..20].to_vec(),
            [&png[..16], &[0, 0, 8, 0], &png[20..]].concat(),
            [&png[..16], &[0; 4], &png[20..]].concat(),
            // A PNG that ends after its head, and one whose pixels are damaged.
            png[..33].to_vec(),
            png.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at == 50)).collect(),
        ] {
            assert!(Logo::of_png(broken).is_none());
        }
        assert_eq!(logo.fitted(110.0, 44.0), (88.0, 44.0));
        assert_eq!(logo.fitted(50.0, 44.0), (50.0, 25.0));
        assert!(Logo::of_png(png_for_test(LOGO_PIXELS_MAX + 1, 1, [0; 4])).is_none());
        png.resize(LOGO_BYTES_MAX + 1, 0);
        assert!(Logo::of_png(png).is_none());
    }
}
