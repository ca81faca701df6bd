//! Draws on the page of a payment advice.

use krilla::color::rgb;
use krilla::geom::{Path, PathBuilder, Rect, Size, Transform};
use krilla::image::Image;
use krilla::num::NormalizedF32;
use krilla::paint::Fill;
use krilla::surface::Surface;
use krilla::tagging::{Artifact, ArtifactType, ContentTag, Identifier, SpanTag};
use qrcodegen::QrCode;

use super::text::{self, ShapedLine, Weight};
use crate::kernel::StoreError;

/// A4 in points.
pub(super) const PAGE_WIDTH: f32 = 595.28;
pub(super) const PAGE_HEIGHT: f32 = 841.89;
pub(super) const MARGIN: f32 = 46.0;
/// The width between the margins.
pub(super) const WIDTH: f32 = PAGE_WIDTH - 2.0 * MARGIN;

/// Colours as red, green and blue.
pub(super) const INK: (u8, u8, u8) = (24, 28, 36);
pub(super) const GREY: (u8, u8, u8) = (92, 100, 112);
pub(super) const RULE: (u8, u8, u8) = (196, 202, 210);
pub(super) const SHADE: (u8, u8, u8) = (243, 245, 248);
pub(super) const WATERMARK: (u8, u8, u8) = (243, 233, 233);
pub(super) const GOOD: (u8, u8, u8) = (11, 107, 58);
pub(super) const LINK: (u8, u8, u8) = (20, 70, 140);
pub(super) const ALERT: (u8, u8, u8) = (166, 28, 28);

pub(super) fn fonts_fault() -> StoreError {
    StoreError::Broken("the fonts of the payment advice do not load".into())
}

pub(super) fn fill(color: (u8, u8, u8)) -> Option<Fill> {
    Some(Fill {
        paint: rgb::Color::new(color.0, color.1, color.2).into(),
        opacity: NormalizedF32::ONE,
        rule: Default::default(),
    })
}

/// Draws and tags at once, so that screen readers can read what is drawn; `page` puts the tags in
/// order. Lengths are in points, from the page's upper left corner; the `y` of a text is its
/// baseline.
pub(super) struct Pen<'a, 'b> {
    pub(super) surface: &'a mut Surface<'b>,
}

impl Pen<'_, '_> {
    pub(super) fn line(
        &mut self,
        line: &ShapedLine,
        x: f32,
        y: f32,
        size: f32,
        color: (u8, u8, u8),
    ) -> Identifier {
        self.surface.set_fill(fill(color));
        let id = self.surface.start_tagged(ContentTag::Span(SpanTag::empty()));
        line.draw(self.surface, x, y, size, false);
        self.surface.end_tagged();
        id
    }

    pub(super) fn text(
        &mut self,
        shown: &str,
        weight: Weight,
        x: f32,
        y: f32,
        size: f32,
        color: (u8, u8, u8),
    ) -> Result<Identifier, StoreError> {
        let line = text::shape(shown, weight).ok_or_else(fonts_fault)?;
        Ok(self.line(&line, x, y, size, color))
    }

    /// Like [`Pen::text`], but the text ends at `right`.
    pub(super) fn text_to(
        &mut self,
        shown: &str,
        weight: Weight,
        right: f32,
        y: f32,
        size: f32,
        color: (u8, u8, u8),
    ) -> Result<Identifier, StoreError> {
        let line = text::shape(shown, weight).ok_or_else(fonts_fault)?;
        Ok(self.line(&line, right - line.width * size, y, size, color))
    }

    /// A PNG with its upper left corner at a place. The image is not interpolated, because PDF/A
    /// forbids that.
    pub(super) fn image(
        &mut self,
        png: &[u8],
        (x, y): (f32, f32),
        (width, height): (f32, f32),
    ) -> Result<Identifier, StoreError> {
        let broken = || StoreError::Broken("the logo of the payment advice cannot be read".into());
        let image = Image::from_png(png.to_vec().into(), false).map_err(|_| broken())?;
        let size = Size::from_wh(width, height).ok_or_else(broken)?;
        let id = self.surface.start_tagged(ContentTag::Other);
        self.surface.push_transform(&Transform::from_translate(x, y));
        self.surface.draw_image(image, size);
        self.surface.pop();
        self.surface.end_tagged();
        Ok(id)
    }

    /// A decorative shape, which screen readers skip.
    pub(super) fn decoration(
        &mut self,
        kind: ArtifactType,
        path: Option<Path>,
        color: (u8, u8, u8),
    ) {
        let Some(path) = path else { return };
        self.surface.start_tagged(ContentTag::Artifact(Artifact::with_kind(kind)));
        self.surface.set_fill(fill(color));
        self.surface.draw_path(&path);
        self.surface.end_tagged();
    }

    pub(super) fn bar(&mut self, x: f32, y: f32, width: f32, height: f32, color: (u8, u8, u8)) {
        self.decoration(ArtifactType::Layout, rectangle(x, y, width, height), color);
    }

    /// A watermark across the whole page.
    pub(super) fn watermark(&mut self, shown: &str) -> Result<(), StoreError> {
        let line = text::shape(shown, Weight::Bold).ok_or_else(fonts_fault)?;
        let size = 560.0 / line.width.max(1.0);
        self.surface
            .start_tagged(ContentTag::Artifact(Artifact::with_kind(ArtifactType::Watermark)));
        self.surface.set_fill(fill(WATERMARK));
        self.surface.push_transform(&Transform::from_rotate_at(
            -52.0,
            PAGE_WIDTH / 2.0,
            PAGE_HEIGHT / 2.0,
        ));
        // As outlines, so that the watermark is not part of the text.
        line.draw(
            self.surface,
            (PAGE_WIDTH - line.width * size) / 2.0,
            PAGE_HEIGHT / 2.0 + size * 0.36,
            size,
            true,
        );
        self.surface.pop();
        self.surface.end_tagged();
        Ok(())
    }
}

fn rectangle(x: f32, y: f32, width: f32, height: f32) -> Option<Path> {
    let mut path = PathBuilder::new();
    path.push_rect(Rect::from_xywh(x, y, width, height)?);
    path.finish()
}

/// The dark modules of a QR code, as one path.
pub(super) fn code_path(code: &QrCode, x: f32, y: f32, width: f32) -> Option<Path> {
    let module = width / code.size() as f32;
    let mut path = PathBuilder::new();
    for row in 0..code.size() {
        let mut column = 0;
        while column < code.size() {
            let start = column;
            while column < code.size() && code.get_module(column, row) {
                column += 1;
            }
            if column > start {
                let (left, length) = (x + start as f32 * module, (column - start) as f32 * module);
                path.push_rect(Rect::from_xywh(left, y + row as f32 * module, length, module)?);
            }
            column += 1;
        }
    }
    path.finish()
}
