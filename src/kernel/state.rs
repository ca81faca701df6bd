//! Statuses and their permitted changes as data: one declaration gives the enum, its words, its
//! arrows and its event types.

/// A status with its arrows (permitted changes). Event types, filters, the documentation and
/// `hundi check` follow from `ALL` and `ARROWS`.
pub trait Status: Copy + Eq + std::fmt::Debug + 'static {
    /// The object whose status it is.
    const OBJECT: &'static str;
    const ALL: &'static [Self];
    /// Every permitted change, as (from, to).
    const ARROWS: &'static [(Self, Self)];
    fn as_str(self) -> &'static str;
    /// `<object>.status.<word>`.
    fn event_type(self) -> &'static str;
    fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|status| status.as_str() == text)
    }
    fn can_become(self, to: Self) -> bool {
        Self::ARROWS.contains(&(self, to))
    }
}

/// Declares a status enum: `statuses!("transfer", Status { Funding "funding" => [Funded], … })`.
#[macro_export]
macro_rules! statuses {
    ($object:literal,
        $(#[$doc:meta])* $name:ident { $($variant:ident $word:literal =>
        [$($to:ident),* $(,)?]),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name { $($variant),* }

        impl $crate::kernel::state::Status for $name {
            const OBJECT: &'static str = $object;
            const ALL: &'static [Self] = &[$($name::$variant),*];
            const ARROWS: &'static [(Self, Self)] = &[$($(($name::$variant, $name::$to),)*)*];
            fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }
            fn event_type(self) -> &'static str {
                match self { $($name::$variant => concat!($object, ".status.", $word)),* }
            }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($crate::kernel::state::Status::as_str(*self))
            }
        }
        impl schemars::JsonSchema for $name {
            // Inlined, because generators of clients put the words of all named enums into one
            // namespace, where they would collide.
            fn inline_schema() -> bool { true }
            fn schema_name() -> std::borrow::Cow<'static, str> { concat!($object,
                "_status").into() }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": [$($word),*] })
            }
        }
    };
}

/// Declares an enum of words that is not a status: `string_enum!(Reason { Late "late", … })`.
#[macro_export]
macro_rules! string_enum {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$when:meta])* $variant:ident $word:literal),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name { $($(#[$when])* $variant),* }

        impl $name {
            pub const ALL: &'static [Self] = &[$($(#[$when])* $name::$variant),*];
            pub const WORDS: &'static [&'static str] = &[$($(#[$when])* $word),*];
            pub const fn as_str(self) -> &'static str {
                match self { $($(#[$when])* $name::$variant => $word),* }
            }
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text)
            }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool { true }
            fn schema_name() -> std::borrow::Cow<'static, str> { stringify!($name).into() }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": $name::WORDS })
            }
        }
    };
}
