//! Judges the figures of a poll: whether the sources agree, whether the figures are plausible,
//! whether the rate jumps, and whether it is near the day's anchor.
//!
//! The figure of several sources is the median of their answers. Taking the first answer would be
//! quicker, but then one wrong source could set the price. The median of three withstands one wrong
//! source; two sources that disagree are both refused. More than half of the configured sources
//! have to agree, so that a wrong one of several cannot set the price while the others are silent.

use super::{MarketRate, RateBounds, RateRefusal};
use crate::kernel::Rate;

/// A figure and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    pub rate: Rate,
    /// The time that the source gives for the figure, or the time of the poll if it gives none or a
    /// later one. In Unix seconds.
    pub observed_at: i64,
}

/// The limits that a rate is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guards {
    pub bounds: RateBounds,
    /// A rate outside this range, in INR for one USD, is a mistake: it is of other currencies, or
    /// in another unit.
    pub inr_per_usd_min: Rate,
    pub inr_per_usd_max: Rate,
    /// How far sources may lie from their median.
    pub disagreement_basis_points_max: i64,
    /// How far a rate may lie from the last good one. A rate beyond that is a jump.
    pub jump_basis_points_max: i64,
    /// How many polls in a row have to show a jump before it is believed.
    pub jump_polls: u32,
    /// How far a rate may lie from the anchor.
    pub anchor_basis_points_max: i64,
    /// The operator's anchor; without one it is the first good rate of the Indian day.
    pub anchor: Option<Rate>,
}

/// Whether a rate differs from `other` by at most `basis_points` of `other`. A basis point is a
/// hundredth of a percent.
fn is_near(rate: Rate, other: Rate, basis_points: i64) -> bool {
    i128::from(rate.0.abs_diff(other.0)) * 10_000 <= i128::from(basis_points) * i128::from(other.0)
}

/// One figure from the good answers of its sources: their median, if more than half of the
/// `sources_count` configured sources lie within `basis_points` of it. Of an even number of answers
/// it is the lower of the two in the middle, because no source gave their mean. Its time is the
/// earliest of the answers near it.
pub fn agreed(
    observations: &[Observation],
    sources_count: usize,
    basis_points: i64,
) -> Result<Observation, RateRefusal> {
    let is_majority = |count: usize| count * 2 > sources_count;
    if !observations.is_empty() && !is_majority(observations.len()) {
        return Err(RateRefusal::TooFewSources);
    }
    let mut sorted: Vec<Rate> = observations.iter().map(|observation| observation.rate).collect();
    sorted.sort_unstable();
    let median =
        *sorted.get(sorted.len().saturating_sub(1) / 2).ok_or(RateRefusal::NoGoodSource)?;
    let near: Vec<&Observation> = observations
        .iter()
        .filter(|observation| is_near(observation.rate, median, basis_points))
        .collect();
    if !is_majority(near.len()) {
        return Err(RateRefusal::SourcesDisagree);
    }
    let observed_at = near
        .iter()
        .map(|observation| observation.observed_at)
        .min()
        .ok_or(RateRefusal::NoGoodSource)?;
    Ok(Observation { rate: median, observed_at })
}

/// The day's first good rate. The day's other rates have to be near it, unless the operator has set
/// an anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateAnchor {
    pub rate: Rate,
    /// The day that it is for; see [`indian_day`].
    pub day: i64,
}

/// The day in India, in days since 1970-01-01. India is 5 h 30 min ahead of UTC all year.
pub fn indian_day(instant: i64) -> i64 {
    (instant + 19_800).div_euclid(86_400)
}

/// What is remembered from poll to poll to judge the next rate. All of it is also in the store,
/// except a jump that is not believed yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateMemory {
    pub last: Option<MarketRate>,
    /// Never the operator's anchor: a stored one would stay after the operator removes the setting.
    pub anchor: Option<RateAnchor>,
    /// A jump that is not believed yet: the rate last seen, and how many polls showed it.
    jump: Option<(Rate, u32)>,
}

impl RateMemory {
    pub fn new(last: Option<MarketRate>, anchor: Option<RateAnchor>) -> RateMemory {
        RateMemory { last, anchor, jump: None }
    }

    /// Judges the rate that a poll found at `instant`, in Unix seconds. An accepted rate becomes
    /// the last good one, and the day's anchor if the day has none yet. A jump is believed only
    /// when `jump_polls` polls in a row show it; after a poll with any other outcome the count
    /// begins anew.
    pub fn judge(
        &mut self,
        seen: MarketRate,
        instant: i64,
        guards: &Guards,
    ) -> Result<MarketRate, RateRefusal> {
        let judged = self.judge_rate(seen, instant, guards);
        if judged != Err(RateRefusal::Jump) {
            self.jump = None;
        }
        judged
    }

    /// Judges a poll that gave no rate, for the reason in `refusal`. The count of a jump begins
    /// anew. If the reason is only that too few sources answered, the figures of those that did can
    /// still show a jump from the last good rate, or a lost peg of USDT. Then the result says
    /// which; otherwise it is `refusal`.
    pub fn judge_without_rate(
        &mut self,
        refusal: RateRefusal,
        inr_per_usd: &[Rate],
        usd_per_usdt: &[Rate],
        guards: &Guards,
    ) -> RateRefusal {
        self.jump = None;
        if !refusal.is_silence() {
            return refusal;
        }
        let pegged = guards.bounds.usdt_usd_min..=guards.bounds.usdt_usd_max;
        if !usd_per_usdt.iter().all(|usdt| pegged.contains(usdt)) {
            return RateRefusal::UsdtDepegged;
        }
        let jump = guards.jump_basis_points_max;
        let is_jump =
            |last: MarketRate| !inr_per_usd.iter().all(|inr| is_near(*inr, last.mid, jump));
        if self.last.is_some_and(is_jump) { RateRefusal::Jump } else { refusal }
    }

    fn judge_rate(
        &mut self,
        seen: MarketRate,
        instant: i64,
        guards: &Guards,
    ) -> Result<MarketRate, RateRefusal> {
        if !(guards.inr_per_usd_min..=guards.inr_per_usd_max).contains(&seen.mid) {
            return Err(RateRefusal::Implausible);
        }
        if !(guards.bounds.usdt_usd_min..=guards.bounds.usdt_usd_max).contains(&seen.usdt_usd) {
            return Err(RateRefusal::UsdtDepegged);
        }
        if instant - seen.observed_at > guards.bounds.age_seconds_max {
            return Err(RateRefusal::Stale);
        }
        let day = indian_day(instant);
        let first = self.anchor.filter(|anchor| anchor.day == day);
        let anchor = guards.anchor.or(first.map(|first| first.rate));
        if anchor.is_some_and(|anchor| !is_near(seen.mid, anchor, guards.anchor_basis_points_max)) {
            return Err(RateRefusal::AnchorDeviation);
        }
        if let Some(last) =
            self.last.filter(|last| !is_near(seen.mid, last.mid, guards.jump_basis_points_max))
        {
            let times = match self.jump {
                Some((rate, times)) if is_near(seen.mid, rate, guards.jump_basis_points_max) => {
                    times + 1
                }
                _ => 1,
            };
            self.jump = Some((seen.mid, times));
            if times < guards.jump_polls {
                return Err(RateRefusal::Jump);
            }
            tracing::warn!(from = %last.mid, to = %seen.mid, polls = times, "a jump of the \
             exchange rate showed long enough to be believed");
        }
        self.last = Some(seen);
        self.anchor = Some(first.unwrap_or(RateAnchor { rate: seen.mid, day }));
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guards() -> Guards {
        Guards {
            bounds: RateBounds::default(),
            inr_per_usd_min: Rate(50_000_000),
            inr_per_usd_max: Rate(200_000_000),
            disagreement_basis_points_max: 50,
            jump_basis_points_max: 100,
            jump_polls: 3,
            anchor_basis_points_max: 200,
            anchor: None,
        }
    }

    fn seen(mid: i64, usdt_usd: i64, observed_at: i64) -> MarketRate {
        MarketRate { mid: Rate(mid), usdt_usd: Rate(usdt_usd), observed_at }
    }

    #[test]
    fn the_median_is_taken_if_most_are_near_it() {
        use RateRefusal::TooFewSources;
        use RateRefusal::{NoGoodSource, SourcesDisagree};
        let cases: [(&[(i64, i64)], Result<(i64, i64), RateRefusal>); 9] = [
            (&[], Err(NoGoodSource)),
            (&[(88_000_000, 5)], Ok((88_000_000, 5))),
            (&[(88_000_000, 5), (88_100_000, 3)], Ok((88_000_000, 3))),
            (&[(88_000_000, 5), (88_440_000, 3)], Ok((88_000_000, 3))),
            (&[(88_000_000, 5), (88_440_001, 3)], Err(SourcesDisagree)),
            (&[(88_000_000, 5), (1, 1), (88_100_000, 4)], Ok((88_000_000, 4))),
            (&[(880_000_000, 5), (88_000_000, 1), (88_100_000, 4)], Ok((88_100_000, 1))),
            (&[(80_000_000, 5), (88_000_000, 1), (96_000_000, 4)], Err(SourcesDisagree)),
            (
                &[(88_000_000, 1), (88_000_000, 1), (96_000_000, 1), (96_000_000, 1)],
                Err(SourcesDisagree),
            ),
        ];
        for (observations, wanted) in cases {
            let observations: Vec<Observation> = observations
                .iter()
                .map(|(rate, at)| Observation { rate: Rate(*rate), observed_at: *at })
                .collect();
            let wanted =
                wanted.map(|(rate, observed_at)| Observation { rate: Rate(rate), observed_at });
            let count = observations.len();
            assert_eq!(agreed(&observations, count, 50), wanted, "{observations:?}");
            // Twice as many sources are configured, and half of them are silent.
            let among = |count| agreed(&observations, count, 50);
            if count > 0 {
                assert_eq!(among(2 * count), Err(TooFewSources), "{observations:?}");
            }
        }
    }

    #[test]
    fn each_guard_has_its_edge() {
        use RateRefusal::{AnchorDeviation, Implausible, Jump, Stale, UsdtDepegged};
        let now = 1_790_000_000;
        let day = indian_day(now);
        let anchor = |rate| Some(RateAnchor { rate: Rate(rate), day });
        let last = |rate| Some(seen(rate, 1_000_000, now - 15));
        for (last, anchor, seen, refusal) in [
            (None, None, seen(88_000_000, 1_000_000, now), None),
            (None, None, seen(50_000_000, 1_000_000, now), None),
            (None, None, seen(49_999_999, 1_000_000, now), Some(Implausible)),
            (None, None, seen(200_000_001, 1_000_000, now), Some(Implausible)),
            (None, None, seen(88_000_000, 994_999, now), Some(UsdtDepegged)),
            (None, None, seen(88_000_000, 995_000, now), None),
            (None, None, seen(88_000_000, 1_005_001, now), Some(UsdtDepegged)),
            (None, None, seen(88_000_000, 1_000_000, now - 60), None),
            (None, None, seen(88_000_000, 1_000_000, now - 61), Some(Stale)),
            (last(88_000_000), None, seen(88_880_000, 1_000_000, now), None),
            (last(88_000_000), None, seen(88_880_001, 1_000_000, now), Some(Jump)),
            (last(88_000_000), None, seen(87_120_000, 1_000_000, now), None),
            (last(88_000_000), None, seen(87_119_999, 1_000_000, now), Some(Jump)),
            (last(88_000_000), anchor(87_000_000), seen(88_740_000, 1_000_000, now), None),
            (
                last(88_000_000),
                anchor(87_000_000),
                seen(88_740_001, 1_000_000, now),
                Some(AnchorDeviation),
            ),
        ] {
            let mut memory = RateMemory::new(last, anchor);
            assert_eq!(
                memory.judge(seen, now, &guards()).err(),
                refusal,
                "{last:?} {anchor:?} {seen:?}"
            );
            // A refused rate is never remembered as good.
            assert_eq!(memory.last, if refusal.is_none() { Some(seen) } else { last });
        }
    }

    #[test]
    fn a_jump_is_believed_when_it_stays() {
        let mut memory = RateMemory::default();
        let mut judge = |mid, at| memory.judge(seen(mid, 1_000_000, at), at, &guards()).err();
        assert_eq!(judge(88_000_000, 1_000), None);
        assert_eq!(judge(89_500_000, 1_015), Some(RateRefusal::Jump));
        assert_eq!(judge(88_000_000, 1_030), None, "it was a glitch");
        assert_eq!(judge(89_500_000, 1_045), Some(RateRefusal::Jump));
        assert_eq!(judge(86_500_000, 1_060), Some(RateRefusal::Jump), "the other way counts anew");
        assert_eq!(judge(86_500_000, 1_075), Some(RateRefusal::Jump));
        assert_eq!(judge(86_600_000, 1_090), None, "three times in a row");
        assert_eq!(judge(86_700_000, 1_105), None);
        // A jump that was believed does not change the day's anchor.
        for at in [1_120, 1_135, 1_150, 1_165] {
            assert_eq!(judge(90_000_000, at), Some(RateRefusal::AnchorDeviation));
        }
    }

    #[test]
    fn only_polls_in_a_row_make_a_jump_believed() {
        use RateRefusal::{AnchorDeviation, Implausible, Jump, Stale, UsdtDepegged};
        let now = 1_790_000_000;
        for (between, refusal) in [
            (seen(89_500_000, 990_000, now), UsdtDepegged),
            (seen(895_000_000, 1_000_000, now), Implausible),
            (seen(89_500_000, 1_000_000, now - 61), Stale),
            (seen(90_500_000, 1_000_000, now), AnchorDeviation),
        ] {
            let mut memory = RateMemory::default();
            let mut judge = |seen| memory.judge(seen, now, &guards()).err();
            let jump = seen(89_500_000, 1_000_000, now);
            assert_eq!(judge(seen(88_000_000, 1_000_000, now)), None);
            assert_eq!(judge(jump), Some(Jump));
            assert_eq!(judge(between), Some(refusal));
            assert_eq!(judge(jump), Some(Jump));
            assert_eq!(judge(jump), Some(Jump), "after {refusal:?} the count begins anew");
            assert_eq!(judge(jump), None, "three times in a row");
        }
    }

    #[test]
    fn the_anchor_is_the_days_first_rate_or_the_operators() {
        let midnight = 20_000 * 86_400 - 19_800;
        assert_eq!((indian_day(midnight - 1), indian_day(midnight)), (19_999, 20_000));
        let mut memory = RateMemory::default();
        memory.judge(seen(88_000_000, 1_000_000, midnight - 20), midnight - 20, &guards()).unwrap();
        memory.judge(seen(88_500_000, 1_000_000, midnight - 5), midnight - 5, &guards()).unwrap();
        assert_eq!(memory.anchor, Some(RateAnchor { rate: Rate(88_000_000), day: 19_999 }));
        memory.judge(seen(88_600_000, 1_000_000, midnight), midnight, &guards()).unwrap();
        assert_eq!(memory.anchor, Some(RateAnchor { rate: Rate(88_600_000), day: 20_000 }));
        let operators = Guards { anchor: Some(Rate(80_000_000)), ..guards() };
        assert_eq!(
            memory.judge(seen(88_600_000, 1_000_000, midnight), midnight, &operators),
            Err(RateRefusal::AnchorDeviation)
        );
    }

    #[test]
    fn the_operators_anchor_ends_with_its_setting() {
        let now = 1_790_000_000;
        let operators = Guards { anchor: Some(Rate(90_000_000)), ..guards() };
        let mut memory = RateMemory::default();
        memory.judge(seen(88_500_000, 1_000_000, now), now, &operators).unwrap();
        // The anchor to store is the day's first good rate, not the operator's figure.
        let first = RateAnchor { rate: Rate(88_500_000), day: indian_day(now) };
        assert_eq!(memory.anchor, Some(first));
        let mut restored = RateMemory::new(memory.last, memory.anchor);
        let mut judge =
            |mid, guards: &Guards| restored.judge(seen(mid, 1_000_000, now), now, guards).err();
        let far = 88_000_000;
        assert_eq!(judge(far, &operators), Some(RateRefusal::AnchorDeviation));
        assert_eq!(judge(far, &guards()), None);
    }
}
