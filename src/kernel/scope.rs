//! Whose data it is: every row of a caller's object belongs to one account and one mode.

/// Test or live.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    Test,
    Live,
}

impl Mode {
    pub const fn is_live(self) -> bool {
        matches!(self, Mode::Live)
    }
    /// The mode's word, as tables, flags and metrics have it.
    pub const fn as_str(self) -> &'static str {
        if self.is_live() { "live" } else { "test" }
    }
}

/// One account in one mode, as one number: the account's number times 2, plus 1 in live mode. It
/// leads the primary key of nearly every table of callers' objects. A request's statements on these
/// tables have it in their condition, which keeps accounts and modes apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Scope(i64);

impl Scope {
    pub const fn new(account_number: i64, mode: Mode) -> Scope {
        Scope(account_number * 2 + mode.is_live() as i64)
    }
    pub const fn from_code(code: i64) -> Scope {
        Scope(code)
    }
    /// The number in the tables. Some statements compute with it: `scope % 2` is the mode, and
    /// `accounts.number * 2` is the test scope of an account.
    pub const fn code(self) -> i64 {
        self.0
    }
    pub const fn account_number(self) -> i64 {
        self.0.div_euclid(2)
    }
    pub const fn mode(self) -> Mode {
        if self.0.rem_euclid(2) == 1 { Mode::Live } else { Mode::Test }
    }
    pub const fn livemode(self) -> bool {
        self.mode().is_live()
    }
}
