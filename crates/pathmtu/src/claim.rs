//! How likely silence is mere loss, and how likely a bad path is missed.

/// The chance that `silent` probes in a row of a size that the path carries would all stay unanswered, given that `lost` of
/// `controls` small probes did on the same flow in the same time.
///
/// It is assumed that loss does not depend on size and strikes probes independently at a rate that nobody knows: the
/// rate has Jeffreys' prior, so this is the posterior predictive of a beta-binomial,
/// ∏ (lost + ½ + i) / (controls + 1 + i) for i = 0 … silent − 1 (A. Gelman et al., "Bayesian Data Analysis", 3rd ed.,
/// section 2.4; H. Jeffreys, "An invariant form for the prior probability in estimation problems", 1946). 1 for no probe.
pub fn silence_by_loss(silent: u32, controls: u32, lost: u32) -> f64 {
    let (controls, lost) = (f64::from(controls), f64::from(lost.min(controls)));
    (0..silent).map(f64::from).map(|index| (lost + 0.5 + index) / (controls + 1.0 + index)).product()
}

/// The chance that at least one of `flows` takes the one bad path of `members`, where each flow takes any with the
/// same chance: 1 − (1 − 1/members)^flows.
pub fn coverage(flows: u32, members: u32) -> f64 {
    if flows == 0 || members == 0 {
        return 0.0;
    }
    // Beyond 2³¹ the chance is 1 or the members are too many to count.
    1.0 - (1.0 - 1.0 / f64::from(members)).powi(i32::try_from(flows).unwrap_or(i32::MAX))
}

/// How many flows [`coverage`] asks for: 17 for one bad of 4 with 99 %, 35 of 8, 72 of 16.
pub fn flows_for_coverage(members: u32, chance: f64) -> u32 {
    if members <= 1 {
        return 1;
    }
    let missed = (1.0 - chance).clamp(f64::MIN_POSITIVE, 1.0);
    (missed.ln() / (1.0 - 1.0 / f64::from(members)).ln()).ceil().max(1.0) as u32
}
