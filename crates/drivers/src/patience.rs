//! Which hosts need not be listened to: all that they send waits long before anybody is handed it.

/// A host whose frames wait for so many moderations is looked at once in one: it adds a quarter to their wait at most.
const MODERATIONS: u64 = 4;
/// With a shorter moderation, looking would cost more than listening.
const SHORTEST_LOOK_NANOSECONDS: u64 = 20_000;
/// A host that sent a frame that waits less is listened to for so long.
const PROMPT_NANOSECONDS: u64 = 100_000_000;

/// Of every host, whether it is listened to. Times are nanoseconds since the epoch.
#[derive(Debug)]
pub(crate) struct Patience {
    moderation: u64,
    hosts: Vec<Host>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Host {
    /// Listened to until then, whatever it sends.
    prompt_until: u64,
    /// Until when all that it sent last waits; none: it is listened to.
    patient_until: Option<u64>,
}

impl Patience {
    /// Listens to all of them.
    pub(crate) fn new(hosts: usize, moderation_nanoseconds: u64) -> Self {
        Self { moderation: moderation_nanoseconds, hosts: vec![Host::default(); hosts] }
    }

    /// A host has sent something, all of which waits for others so long at least.
    pub(crate) fn judge(&mut self, host: usize, now: u64, wait: u64) {
        let host = &mut self.hosts[host];
        let waits = self.moderation >= SHORTEST_LOOK_NANOSECONDS && wait >= MODERATIONS * self.moderation;
        if !waits {
            host.prompt_until = now + PROMPT_NANOSECONDS;
        }
        host.patient_until = (waits && host.prompt_until <= now).then_some(now + wait);
    }

    /// Whether any host is patient, or was until it is asked for by [`Patience::has_ended`].
    pub(crate) fn is_anywhere(&self) -> bool {
        self.hosts.iter().any(|host| host.patient_until.is_some())
    }

    /// Whether a host is patient, or was until it is asked for by [`Patience::has_ended`].
    pub(crate) fn is_patient(&self, host: usize) -> bool {
        self.hosts[host].patient_until.is_some()
    }

    /// Whether a host was patient and is no longer, as its frames have left; told once.
    pub(crate) fn has_ended(&mut self, host: usize, now: u64) -> bool {
        self.hosts[host].patient_until.take_if(|until| *until <= now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODERATION: u64 = 50_000;

    #[test]
    fn a_host_is_patient_while_its_frames_wait() {
        let mut patience = Patience::new(2, MODERATION);
        assert!(!patience.is_anywhere());
        // Four moderations are 200 us: one nanosecond less is too little.
        patience.judge(0, 1_000_000_000, 200_000);
        patience.judge(1, 1_000_000_000, 199_999);
        assert!(patience.is_anywhere());
        assert_eq!([0, 1].map(|host| patience.is_patient(host)), [true, false]);
        assert!(!patience.has_ended(0, 1_000_199_999));
        assert!(patience.has_ended(0, 1_000_200_000));
        assert!(!patience.has_ended(0, 1_000_200_000));
        assert!(!patience.is_anywhere());
    }

    #[test]
    fn one_frame_that_does_not_wait_is_remembered() {
        let mut patience = Patience::new(1, MODERATION);
        patience.judge(0, 0, 0);
        // Bulk beside requests: a tenth of a second after the last of these it is patient again, and not before.
        for (now, is_patient) in [(1, false), (99_999_999, false), (100_000_000, true)] {
            patience.judge(0, now, 4_000_000);
            assert_eq!(patience.is_patient(0), is_patient, "{now}");
        }
        patience.judge(0, 100_000_001, 0);
        assert!(!patience.is_patient(0));
    }

    #[test]
    fn who_wants_to_be_told_at_once_is() {
        for (moderation, is_patient) in [(0, false), (19_999, false), (20_000, true)] {
            let mut patience = Patience::new(1, moderation);
            patience.judge(0, 0, 4_000_000);
            assert_eq!(patience.is_patient(0), is_patient, "{moderation}");
        }
    }
}
