//! Functions of the driver that are not simulated.

include!(concat!(env!("OUT_DIR"), "/unknown.rs"));
