//! Exchanges the running switch for one with another program.

use switch::{PortId, SwitchControl};

use crate::data_plane::DataPlane;

/// Exchanges the running switch for `next`, between two batches of packets, and returns the old one. Packets in its
/// queues are sent first, so that none is lost. The counts of ports, queues and drops continue. With `keep`, registers
/// and counters of the same name and shape keep their values, since they are the packets' memory. `next` already holds
/// what controllers wrote, meter rates included.
pub(crate) fn exchange(
    plane: &mut DataPlane<'_>,
    mut next: Box<dyn SwitchControl>,
    keep: bool,
) -> Box<dyn SwitchControl> {
    // Without this, counts and registers that other threads still write would be lost.
    (plane.stop_others)();
    plane.switch.drain(plane.now, plane.output);
    let down: Vec<PortId> = plane.switch.ports().ids().filter(|port| !plane.switch.ports().is_up(*port)).collect();
    for port in down {
        next.set_port_up(port, false);
    }
    next.objects_mut().advance_clock(plane.now.as_ns());
    if keep {
        carry_over(plane.switch, &mut *next);
    }
    plane.switch.swap_with(&mut *next);
    plane.switch.continue_counts(next.registry());
    next
}

/// Copies the values of registers and counters that both programs have.
fn carry_over(old: &dyn SwitchControl, new: &mut dyn SwitchControl) {
    let (before, after) = (old.program().clone(), new.program().clone());
    for (to, register) in &after.registers {
        let same = |it: &&ir::Register| it.name == register.name && it.width == register.width;
        let Some((from, _)) = before.registers.iter().find(|(_, it)| same(it)) else { continue };
        let size = old.objects().register_size(from).min(register.size);
        for index in 0..size {
            if let Ok(value) = old.objects().register(from, index)
                && !value.is_zero()
            {
                let _ = new.objects_mut().set_register(to, index, value);
            }
        }
    }
    for (to, counter) in &after.counters {
        let Some((from, _)) = before.counters.iter().find(|(_, it)| it.name == counter.name) else { continue };
        let sizes = (old.objects().counter_size(from), new.objects().counter_size(to));
        let (Some(from_size), Some(to_size)) = sizes else { continue };
        for index in 0..from_size.min(to_size) {
            if let Ok(value) = old.objects().counter(from, index)
                && value != engine::CounterValue::default()
            {
                let _ = new.objects_mut().set_counter(to, index, value);
            }
        }
    }
}
