//! Which sizes to try between one that passes and one that does not.

/// MTUs that are often met: IPv6's least, tunnels over 1500, PPPoE, 802.11 and FDDI left out, clouds and jumbo variants
/// (docs/reference/mtu-faults.md).
const COMMON: [u32; 14] =
    [1280, 1400, 1420, 1450, 1454, 1460, 1492, 1500, 4000, 8500, 8896, 8950, 9001, 9216];
/// Into how many parts an interval is split: three rounds tell 4096 sizes apart.
const PARTS: u32 = 16;

/// The common MTUs above `low` and below `high`.
pub(crate) fn common(low: u32, high: u32) -> impl Iterator<Item = u32> {
    COMMON.into_iter().filter(move |&size| low < size && size < high)
}

/// Up to 16 sizes above `low` and below `high`, evenly spread; all of them if there are no more.
pub(crate) fn split(low: u32, high: u32) -> impl Iterator<Item = u32> {
    let between = high.saturating_sub(low).saturating_sub(1);
    let count = between.min(PARTS);
    (1..=count)
        .map(move |part| low + (u64::from(between + 1) * u64::from(part) / u64::from(count + 1)) as u32)
}
