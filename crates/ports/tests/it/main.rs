//! The live tests of `ports`, in one binary, so that their dependencies are linked once.

mod live;
mod live_forward;
mod live_load;
mod live_namespace;
mod live_redirect_losses;
mod live_tap;
mod live_trouble;
mod live_xdp;
mod live_xdp_features;
mod live_xdp_router;
mod live_xdp_stacks;
mod live_xdp_trouble;

fn main() {
    live_xdp_trouble::hold_if_asked();
    live::run(&[
        live_forward::SUITE,
        live_trouble::SUITE,
        live_namespace::SUITE,
        live_tap::SUITE,
        live_xdp::SUITE,
        live_xdp_features::SUITE,
        live_xdp_stacks::SUITE,
        live_xdp_trouble::SUITE,
        live_load::SUITE,
        live_redirect_losses::SUITE,
        live_xdp_router::SUITE,
    ]);
}
