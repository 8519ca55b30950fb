//! Checksums that were left open, for a NIC to fill in.

/// Fewer segments of a direction say nothing about its checksums.
const LEAST_CHECKED: u64 = 3;
/// Checksums of one direction, those of aggregates apart: the kernel that merges segments leaves theirs open, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Checksums {
    checked: [u64; 2],
    wrong: [u64; 2],
}

impl Checksums {
    pub(crate) fn take(&mut self, is_right: bool, is_aggregate: bool) {
        self.checked[usize::from(is_aggregate)] += 1;
        self.wrong[usize::from(is_aggregate)] += u64::from(!is_right);
    }

    /// Whether there are some, and none is right.
    pub(crate) fn are_all_wrong(&self) -> bool {
        self.checked.iter().sum::<u64>() > 0 && self.checked == self.wrong
    }

    /// Whether one of a segment that is no aggregate is right.
    pub(crate) fn has_right(&self) -> bool {
        self.checked[0] > self.wrong[0]
    }

    /// Whether they are left to a NIC: nearly all are wrong. A few that are wrong were damaged on the way.
    pub(crate) fn are_left_open(&self) -> bool {
        let mut both = self.checked.into_iter().zip(self.wrong);
        both.any(|(checked, wrong)| checked >= LEAST_CHECKED && wrong * 10 >= checked * 9)
    }
}
