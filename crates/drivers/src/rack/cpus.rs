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
