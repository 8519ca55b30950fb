//! What a reading of a host tells beside its usual settings.

use framegauge_linux::Result;
pub use framegauge_linux::features::Feature;
use framegauge_linux::features::read;
use std::collections::BTreeMap;

/// Features by the kernel's names; `None` where the kernel has none of that name.
pub type Features = BTreeMap<String, Option<Feature>>;

/// Sysctls, and features of the interfaces (`ethtool -k`).
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// Sysctls by name.
    pub sysctls: Vec<String>,
    /// Features by the kernel's names.
    pub features: Vec<String>,
}

impl Watched {
    /// What an interface says of the watched features.
    pub fn features_of(&self, interface: &str) -> Result<Features> {
        self.features.iter().map(|name| Ok((name.clone(), read(interface, name)?))).collect()
    }
}
