//! Which CPUs the fabric and the hosts get.

use framegauge_linux::sched;

/// Which CPUs work for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuPlan {
    /// The fabric's, if it has one for itself.
    pub fabric: Option<usize>,
    /// The hosts'.
    pub hosts: Vec<usize>,
}

/// The fabric gets the last CPU for itself where there are two or more.
pub fn plan_cpus(fabric: bool) -> CpuPlan {
    let mut hosts = sched::allowed_cpus();
    let own = if fabric && hosts.len() > 1 { hosts.pop() } else { None };
    CpuPlan { fabric: own, hosts }
}

/// How hosts behind a switch of the kernel's take in what arrives.
#[derive(Debug, Clone, Copy)]
pub struct KernelReceivers {
    /// How many hosts there are.
    pub hosts: usize,
    /// Their kernels merge what arrives.
    pub gro: bool,
    /// Aggregates pass the switch whole.
    pub tso: bool,
}

impl KernelReceivers {
    /// Whether the receive path can be a thread: only with GRO a veth has one of its own.
    pub fn can_be_threaded(self) -> bool {
        self.gro
    }

    /// The one CPU of `cpus` that takes in what arrives at host `host` (from 0), if it must be one. Behind a switch, with
    /// three hosts or more, packets overtake each other unless the host polls, which takes GRO and frames one by one.
    pub fn receive_cpu(self, host: usize, cpus: &[usize]) -> Option<usize> {
        let polls = self.gro && !self.tso;
        (self.hosts > 2 && !polls).then(|| cpus[host % cpus.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cpu_receives_where_packets_could_overtake_each_other() {
        let of = |hosts, gro, tso| KernelReceivers { hosts, gro, tso };
        assert_eq!((0..3).map(|host| of(3, false, false).receive_cpu(host, &[2, 5])).collect::<Vec<_>>(), {
            [Some(2), Some(5), Some(2)]
        });
        assert_eq!(of(3, true, true).receive_cpu(1, &[2, 5]), Some(5));
        // Those that poll, and two hosts without a switch between.
        assert_eq!(of(3, true, false).receive_cpu(1, &[2, 5]), None);
        assert_eq!(of(2, false, false).receive_cpu(1, &[2, 5]), None);
    }
}
