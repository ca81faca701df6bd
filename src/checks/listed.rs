//! Checks that screen against the operator's sanctions lists and leave accounts to another adapter.

use std::sync::Arc;

use super::{AccountAnswer, AccountQuestion, Checks, ScreeningFinding, ScreeningQuestion};
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
    fn account(&self, question: &AccountQuestion) -> AccountAnswer {
        self.accounts.account(question)
    }
    fn screen(&self, question: &ScreeningQuestion) -> ScreeningFinding {
        self.lists.screener().screen(question)
    }
    fn screen_address(&self, address: &TronAddress) -> ScreeningFinding {
        self.lists.screener().screen_address(address)
    }
}
