//! Layers in an order that can be: each must be able to carry the next.

use super::{Cargo, Encapsulation, EncapsulationError, Layer};

/// The most layers of one stack: more is a mistake.
const MOST_LAYERS: usize = 16;

/// Encapsulations from outermost to innermost, in an order that can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    pub(super) layers: Vec<Layer>,
    pub(super) cargo: Cargo,
}

impl Stack {
    /// These layers, if each can be inside of the one before it.
    pub fn new(layers: Vec<Layer>) -> Result<Stack, EncapsulationError> {
        if layers.len() > MOST_LAYERS {
            let actual = format!("{} layers", layers.len());
            return Err(EncapsulationError::new("encapsulations", actual, format!("at most {MOST_LAYERS}")));
        }
        let mut cargo = Cargo::Ethernet;
        let mut around: Option<&Layer> = None;
        for layer in &layers {
            check_order(layer, around, cargo)?;
            cargo = layer.encapsulation.cargo(cargo);
            around = Some(layer);
        }
        Ok(Stack { layers, cargo })
    }

    /// The layers, outermost first.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }
}

fn check_order(layer: &Layer, around: Option<&Layer>, cargo: Cargo) -> Result<(), EncapsulationError> {
    let place = layer.to_string();
    let outside = around.map_or("the link".to_string(), ToString::to_string);
    let fail = |actual: &str, expected: &str| Err(EncapsulationError::new(place, actual, expected));
    let needs_ethernet = layer.encapsulation.is_frame_only() || layer.encapsulation == Encapsulation::Pppoe;
    let mpls = matches!(layer.encapsulation, Encapsulation::Mpls { .. });
    let in_gre = around.is_some_and(|around| matches!(around.encapsulation, Encapsulation::Gre { .. }));
    if needs_ethernet && cargo != Cargo::Ethernet && !(mpls && in_gre) {
        let expected = if mpls { "Ethernet or gre around it" } else { "Ethernet around it" };
        return fail(&format!("{outside} around it, which carries no Ethernet"), expected);
    }
    if let (Cargo::Ip(Some(only)), Some(underlay)) = (cargo, layer.encapsulation.underlay())
        && only != underlay
    {
        return fail(
            &format!("{outside} around it, which carries {only} only"),
            &format!("{only} as its underlay"),
        );
    }
    Ok(())
}
