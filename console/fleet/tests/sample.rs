//! The sample inventory that people start from is one that loads.

use std::path::Path;

use muster_fleet::{Inventory, Selection};

#[test]
fn the_sample_inventory_loads_and_its_groups_name_its_nodes() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/inventory.sample.toml");
    let inventory = Inventory::load(&file).unwrap();
    assert_eq!(inventory.nodes().len(), 33);
    let names = |list: &str| -> Vec<String> {
        let selection = Selection { include: vec![list.to_owned()], exclude: Vec::new() };
        inventory.select(&selection).unwrap().into_iter().map(|node| node.name).collect()
    };
    assert_eq!(names("@canary"), ["node001", "node002", "node017", "node018"]);
    assert_eq!(names("@leaf=leaf2").len(), 16);
    let login = &names("login1.example.com")[0];
    let node = inventory.nodes().iter().find(|node| node.name == *login).unwrap();
    assert_eq!((node.user.as_deref(), node.port), (Some("ops"), 2222));
}
