//! The QR code of a text, as the path of an inline SVG: of a deposit address, or of the secret of a
//! second factor.

use std::fmt::Write;

use qrcodegen::{QrCode, QrCodeEcc};

use crate::kernel::StoreError;

/// The white border that a reader needs, in modules (ISO/IEC 18004).
const QUIET_ZONE_MODULES: i32 = 4;

/// A QR code for an SVG: its side in modules, quiet zone included, and the path of the dark
/// modules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QrSvg {
    pub side: i32,
    pub path: String,
}

/// Draws a text as it is. The payer's page gives the bare deposit address, because wallets differ
/// in the forms of URIs that they read.
pub fn draw(text: &str) -> Result<QrSvg, StoreError> {
    let code = QrCode::encode_text(text, QrCodeEcc::Medium)
        .map_err(|_| StoreError::Broken("a text does not fit a QR code".into()))?;
    let mut path = String::new();
    for y in 0..code.size() {
        let mut x = 0;
        while x < code.size() {
            let width = (x..code.size()).take_while(|x| code.get_module(*x, y)).count() as i32;
            if width > 0 {
                // Writing into a String does not fail.
                let _ = write!(
                    path,
                    "M{},{}h{width}v1h-{width}z",
                    x + QUIET_ZONE_MODULES,
                    y + QUIET_ZONE_MODULES
                );
            }
            x += width.max(1);
        }
    }
    Ok(QrSvg { side: code.size() + 2 * QUIET_ZONE_MODULES, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tron_address_is_a_small_code_with_its_quiet_zone() {
        let drawn = draw("TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf").unwrap();
        // Version 3 has 29 modules; the finder pattern's upper edge is 7 wide.
        assert_eq!(drawn.side, 29 + 8);
        assert!(drawn.path.starts_with("M4,4h7v1h-7z"), "{}", drawn.path);
        assert_ne!(drawn, draw("TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t").unwrap());
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        assert!(draw(&"T".repeat(5_000)).is_err());
    }
}
