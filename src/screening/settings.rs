//! The table `[screening]` of the configuration.

use std::path::PathBuf;

use serde::Deserialize;

use super::judge::Thresholds;
use super::{ListName, ofac};
use crate::kernel::within;

/// The default of `age_days_max`.
const AGE_DAYS_DEFAULT: i64 = 7;

/// The table `[screening]` of the configuration, as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScreeningSource {
    /// A directory with OFAC's sdn.csv, alt.csv, add.csv and sdn_comments.csv.
    pub ofac_directory: Option<PathBuf>,
    /// The UN's consolidated.xml.
    pub un_file: Option<PathBuf>,
    /// The operator's own list; see `own.rs` for its columns.
    pub operator_file: Option<PathBuf>,
    /// The greatest age of OFAC's and the UN's list in live mode, in days: 1 to 90; default 7.
    pub age_days_max: Option<i64>,
    /// 0.7 to 1; default 0.85; see `Thresholds`.
    pub score_possible: Option<f64>,
    /// `score_possible` to 1; default 0.95.
    pub score_confirmed: Option<f64>,
}

/// The settings after the check: every value is in its range, and at least one list is named.
#[derive(Clone, Debug)]
pub struct ScreeningSettings {
    ofac_directory: Option<PathBuf>,
    un_file: Option<PathBuf>,
    operator_file: Option<PathBuf>,
    pub(super) age_days_max: i64,
    pub(super) thresholds: Thresholds,
}

impl TryFrom<ScreeningSource> for ScreeningSettings {
    type Error = String;

    fn try_from(source: ScreeningSource) -> Result<ScreeningSettings, String> {
        let defaults = Thresholds::default();
        let thresholds = Thresholds {
            score_possible: source.score_possible.unwrap_or(defaults.score_possible),
            score_confirmed: source.score_confirmed.unwrap_or(defaults.score_confirmed),
        };
        let age_days_max = source.age_days_max.unwrap_or(AGE_DAYS_DEFAULT);
        let age_days_max = within("screening.age_days_max", age_days_max, 1, 90)?;
        if !(0.7..=1.0).contains(&thresholds.score_possible) {
            return Err("screening.score_possible must be between 0.7 and 1".into());
        }
        if !(thresholds.score_possible..=1.0).contains(&thresholds.score_confirmed) {
            return Err(
                "screening.score_confirmed must be between screening.score_possible and 1".into()
            );
        }
        if source.ofac_directory.is_none()
            && source.un_file.is_none()
            && source.operator_file.is_none()
        {
            return Err(
                "[screening] names no list: give ofac_directory, un_file or operator_file".into()
            );
        }
        Ok(ScreeningSettings {
            ofac_directory: source.ofac_directory,
            un_file: source.un_file,
            operator_file: source.operator_file,
            age_days_max,
            thresholds,
        })
    }
}

impl ScreeningSettings {
    /// The files of each list that is named.
    pub(super) fn files(&self) -> Vec<(ListName, Vec<PathBuf>)> {
        let ofac = self.ofac_directory.as_ref().map(|folder| {
            (ListName::Ofac, ofac::FILE_NAMES.map(|name| folder.join(name)).to_vec())
        });
        let un = self.un_file.as_ref().map(|file| (ListName::Un, vec![file.clone()]));
        let own = self.operator_file.as_ref().map(|file| (ListName::Own, vec![file.clone()]));
        [ofac, un, own].into_iter().flatten().collect()
    }
}
