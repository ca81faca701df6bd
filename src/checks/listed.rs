//! Checks that screen against the operator's sanctions lists and leave accounts to another adapter.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{AccountCheck, AccountQuestion, Checks, LookedUp, ScreeningFinding, ScreeningQuestion};
use crate::chains::tron_address::TronAddress;
use crate::screening::lists::Lists;

/// `accounts` asks the bank; `lists` answer from memory.
pub struct ListedChecks {
    pub accounts: Box<dyn Checks>,
    pub lists: Arc<Lists>,
}

impl Checks for ListedChecks {
    fn name(&self) -> &'static str {
        self.accounts.name()
    }
    fn account(&self, question: &AccountQuestion) -> AccountCheck {
        self.accounts.account(question)
    }
    fn look_up<'a>(&'a self, question: &'a AccountQuestion) -> BoxFuture<'a, LookedUp> {
        self.accounts.look_up(question)
    }
    fn asks_lists(&self) -> bool {
        true
    }
    fn screen(&self, question: &ScreeningQuestion) -> ScreeningFinding {
        self.lists.screener().screen(question)
    }
    fn screen_address(&self, address: &TronAddress) -> ScreeningFinding {
        self.lists.screener().screen_address(address)
    }
}
