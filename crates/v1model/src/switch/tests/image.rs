//! Switches of one image share its code and nothing else.

use std::sync::Arc;

use ::switch::Time;

use super::in_place::Pair;
use super::traced::router;
use super::workers::{of_flow, routes};
use crate::{Config, Executor, Image, Switch};

#[test]
fn switches_of_one_image_share_its_code_and_no_state() {
    let program = Arc::clone(router(|text| text).program());
    for executor in [Executor::Interpreter, Executor::Jit] {
        let config = Config { executor, ..Config::with_ports(4) };
        let image = Image::new(Arc::clone(&program), executor).expect("the router is for the switch");
        // Each switch of the image is compared to one built by itself.
        let pair = || Pair {
            handed: Switch::new(Arc::clone(&program), config.clone()).expect("the router fits the switch"),
            lent: Switch::from_image(&image, config.clone()).expect("the router fits the switch"),
            in_place: 0,
            offered: 0,
        };
        let (mut routed, mut bare) = (pair(), pair());
        match (&routed.lent.machine, &bare.lent.machine) {
            (Some(one), Some(other)) => assert!(Arc::ptr_eq(one, other), "the program was compiled more than once"),
            (one, other) => assert!(executor == Executor::Interpreter && one.is_none() && other.is_none()),
        }
        routed.both(|switch| routes(switch, 8));
        for number in 0..20 {
            let frames: Vec<Vec<u8>> = (0..8).map(|flow| of_flow(flow, number)).collect();
            routed.send(Time::from_us(number.into()), 0, &frames, 64);
            bare.send(Time::from_us(number.into()), 0, &frames, 64);
        }
        let objects = |switch: &Switch| format!("{:?}", switch.objects());
        assert_eq!(objects(&routed.lent), objects(&routed.handed));
        assert_eq!(objects(&bare.lent), objects(&bare.handed));
        assert_ne!(objects(&routed.lent), objects(&bare.lent), "routes of one switch are another's");
        let dropped = |switch: &Switch| switch.drop_sites().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_ne!(dropped(&routed.lent), dropped(&bare.lent), "the routes make no difference");
    }
}

#[test]
#[should_panic(expected = "an image is for one executor")]
fn an_image_is_for_what_it_was_made_for() {
    let program = Arc::clone(router(|text| text).program());
    let image = Image::new(program, Executor::Interpreter).expect("the router is fit");
    _ = Switch::from_image(&image, Config { executor: Executor::Jit, ..Config::with_ports(4) });
}
