//! The largest value of the last so many rounds, from three kept ones: Linux' `lib/win_minmax.c`, after Kathleen Nichols.

/// Values with their rounds: the largest, and the largest of what came later.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Maximum([(u64, u64); 3]);

impl Maximum {
    pub(super) fn get(&self) -> u64 {
        self.0[0].1
    }

    /// Takes a value of round `now`; those from more than `rounds` before are forgotten.
    pub(super) fn take(&mut self, rounds: u64, now: u64, value: u64) {
        let new = (now, value);
        let [first, second, third] = &mut self.0;
        if value >= first.1 || now - third.0 > rounds {
            self.0 = [new; 3];
            return;
        }
        if value >= second.1 {
            (*second, *third) = (new, new);
        } else if value >= third.1 {
            *third = new;
        }
        let age = now - first.0;
        if age > rounds {
            (*first, *second, *third) = (*second, *third, new);
            if now - first.0 > rounds {
                (*first, *second, *third) = (*second, *third, new);
            }
        } else if second.0 == first.0 && age > rounds / 4 {
            (*second, *third) = (new, new);
        } else if third.0 == second.0 && age > rounds / 2 {
            *third = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_the_window_is_forgotten() {
        let mut maximum = Maximum::default();
        for (now, value) in [(0, 100), (3, 60), (6, 50), (9, 40)] {
            maximum.take(10, now, value);
        }
        assert_eq!(maximum.get(), 100);
        maximum.take(10, 11, 30);
        assert_eq!(maximum.get(), 60);
        maximum.take(10, 14, 30);
        assert_eq!(maximum.get(), 50);
        maximum.take(10, 14, 70);
        assert_eq!(maximum.get(), 70);
    }

    /// It is never more than the largest of the window, and never less than the newest.
    #[test]
    fn it_is_the_maximum_but_for_what_three_values_cannot_keep() {
        let mut draws = framegauge_frames::SplitMix::new(3);
        let (mut maximum, mut all) = (Maximum::default(), Vec::new());
        for now in 0..1000 {
            let value = draws.bits() % 1000;
            maximum.take(10, now, value);
            all.push(value);
            let most = all.iter().rev().take(11).max().expect("some");
            assert!((value..=*most).contains(&maximum.get()), "{now}");
        }
    }
}
