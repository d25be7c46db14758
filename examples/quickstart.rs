//! Finds which of some states are new: a set of keys of a user-defined type, on the best available device.

use warpset::{Device, TypedTable};

#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct State {
    position: [u16; 4],
    turn: u32,
}

fn main() -> Result<(), warpset::Error> {
    let device = Device::best()?; // a GPU, or else the CPU; Device::cpu() to choose the CPU
    let states = TypedTable::<State>::new(&device, 1_000)?; // room for 1,000 states or more

    let start = State { position: [0, 1, 2, 3], turn: 0 };
    states.find_or_put_many(&[start])?.complete(&states)?; // an error if the table was too full

    let successors = [State { turn: 1, ..start }, State { position: [3, 1, 2, 0], turn: 1 }, start];
    let batch = states.find_or_put_many(&successors)?;
    for (state, outcome) in successors.iter().zip(&batch.outcomes) {
        println!("{outcome:?}: {state:?}");
    }
    println!("{} states on {device}", states.len()?);
    Ok(())
}
