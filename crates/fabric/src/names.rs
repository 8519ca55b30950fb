//! What a fabric has, for those who ask.

use crate::{Fabric, PortIndex};

impl Fabric {
    /// How many ports there are.
    pub fn ports(&self) -> usize {
        self.ports.len()
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.nics.len()
    }

    /// The name of a port: `h1>switch`.
    ///
    /// # Panics
    ///
    /// If the port is not one of this fabric.
    pub fn port_name(&self, port: PortIndex) -> &str {
        &self.names[usize::from(port.0)]
    }
}
