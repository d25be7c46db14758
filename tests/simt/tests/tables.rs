use warpset_simt::bucket::SPECS;
use warpset_simt::hunt::{Strategy, hunt};
use warpset_simt::machine::Rules;
use warpset_simt::storm::{Scale, Storm};

#[test]
fn storms() {
    for kernels in SPECS {
        for scale in [Scale::Lanes, Scale::Warps] {
            for strategy in [Strategy::Random, Strategy::Pct(3), Strategy::LockStep] {
                let count = if scale == Scale::Lanes { 500 } else { 40 };
                let mut storm = Storm::new(kernels, scale, true);
                match hunt(&mut storm, strategy, &Rules::default(), 0, count) {
                    Ok(effort) => println!("{:?} {strategy} {} {effort}", scale, kernels.name()),
                    Err(catch) => println!("{catch}"),
                }
            }
        }
    }
}
