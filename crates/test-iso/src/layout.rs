//! Gives everything a sector and writes the image.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::boot;
use crate::options::{LiveImageOptions, Written};
use crate::records::{self, NameScheme, Places, SECTOR, Volume};
use crate::tree::{Data, FileTree};

/// First sector after the system area.
const DESCRIPTORS: u32 = 16;

/// A tree of directories: its names and where its parts are.
struct Hierarchy {
    names: NameScheme,
    path_tables: [u32; 2],
    path_table_length: u32,
    places: Places,
}

pub(super) fn write(
    path: &Path,
    options: &LiveImageOptions,
    mut tree: FileTree,
) -> io::Result<Written> {
    let mut names = vec![NameScheme::Plain];
    if options.joliet {
        names.push(NameScheme::Joliet);
    }
    // Descriptors: one for each tree, the boot record and the terminator.
    let mut next = DESCRIPTORS + 2 + if options.joliet { 2 } else { 1 };
    let mut hierarchies = Vec::new();
    for mut names in names {
        if names == NameScheme::Plain && options.rock_ridge {
            names = NameScheme::RockRidge(next);
            next += 1;
        }
        hierarchies.push(place_directories(&tree, names, &mut next)?);
    }
    let volume_sectors = place_files(&tree, &mut hierarchies, &mut next)?;
    let sectors = hierarchies[0].places.sectors.clone();
    let catalog = fill_in_boot(&mut tree, &sectors)?;

    let file = File::create(path)?;
    let length = u64::from(volume_sectors) * SECTOR;
    file.set_len(length)?;
    write_system_area(&file, &tree, &sectors)?;
    write_descriptors(
        &file,
        options,
        &tree,
        &hierarchies,
        (volume_sectors, catalog),
    )?;
    for hierarchy in &hierarchies {
        write_directories(&file, &tree, hierarchy)?;
    }
    write_files(&file, &tree, &sectors)?;
    let files = files(&tree, &sectors);
    Ok(Written { length, files })
}

fn place_directories(tree: &FileTree, names: NameScheme, next: &mut u32) -> io::Result<Hierarchy> {
    let mut places = Places {
        sectors: vec![0; tree.0.len()],
        lengths: vec![0; tree.0.len()],
    };
    for node in 0..tree.0.len() {
        places.lengths[node] = tree.length(node)?;
    }
    // Lengths do not depend on sectors, so a first pass without sectors gives the final lengths.
    let table = records::path_table(tree, names, &places, true);
    let path_tables = [take(next, table.len())?, take(next, table.len())?];
    for node in tree.directories() {
        let length = records::directory(tree, names, node, &places).len();
        places.lengths[node] = u32::try_from(length).map_err(io::Error::other)?;
        places.sectors[node] = take(next, length)?;
    }
    Ok(Hierarchy {
        names,
        path_tables,
        path_table_length: u32::try_from(table.len()).map_err(io::Error::other)?,
        places,
    })
}

fn place_files(tree: &FileTree, hierarchies: &mut [Hierarchy], next: &mut u32) -> io::Result<u32> {
    for (node, entry) in tree.0.iter().enumerate() {
        let Some(data) = &entry.data else { continue };
        let length = usize::try_from(data.length).map_err(io::Error::other)?;
        let sector = take(next, length)?;
        for hierarchy in hierarchies.iter_mut() {
            hierarchy.places.sectors[node] = sector;
        }
    }
    Ok(*next)
}

/// Takes the sectors that `length` bytes need.
fn take(next: &mut u32, length: usize) -> io::Result<u32> {
    let first = *next;
    let count = (length as u64).div_ceil(SECTOR).max(1);
    *next = u32::try_from(u64::from(first) + count).map_err(io::Error::other)?;
    Ok(first)
}

/// Writes sectors into the boot catalog and the loader; returns the catalog's.
fn fill_in_boot(tree: &mut FileTree, sectors: &[u32]) -> io::Result<u32> {
    let missing = || io::Error::other("the tree has no boot files");
    let efi = tree
        .find(boot::EFI_IMAGE)
        .or_else(|| tree.find(boot::S390X_IMAGE));
    let efi = efi.ok_or_else(missing)?;
    let efi = (sectors[efi], tree.length(efi)?);
    let loader = tree.find(boot::LOADER);
    if let Some(node) = loader {
        let mut code = boot::loader();
        boot::patch_loader(&mut code, sectors[node]);
        tree.0[node].data = Some(Data::from(code));
    }
    let catalog = tree
        .find(boot::CATALOG_X86)
        .or_else(|| tree.find(boot::CATALOG_EFI))
        .ok_or_else(missing)?;
    let bytes = boot::catalog(loader.map(|node| sectors[node]), efi);
    tree.0[catalog].data = Some(Data::from(bytes));
    Ok(sectors[catalog])
}

/// A partition table that shows the EFI partition to firmware that boots from a USB stick.
fn write_system_area(file: &File, tree: &FileTree, sectors: &[u32]) -> io::Result<()> {
    let Some(efi) = tree.find(boot::EFI_IMAGE) else {
        return Ok(());
    };
    let mut partition = [0; 16];
    partition[4] = 0xef;
    partition[8..12].copy_from_slice(&records::le32(sectors[efi] * 4));
    partition[12..].copy_from_slice(&records::le32(tree.length(efi)?.div_ceil(512)));
    file.write_all_at(&partition, 446)?;
    file.write_all_at(&[0x55, 0xaa], 510)
}

fn write_descriptors(
    file: &File,
    options: &LiveImageOptions,
    tree: &FileTree,
    hierarchies: &[Hierarchy],
    (size, catalog): (u32, u32),
) -> io::Result<()> {
    let id = options.volume_id();
    let mut descriptors: Vec<_> = hierarchies
        .iter()
        .map(|hierarchy| {
            let volume = Volume {
                id: &id,
                size,
                path_table_length: hierarchy.path_table_length,
                path_tables: hierarchy.path_tables,
            };
            records::volume(tree, hierarchy.names, &volume, &hierarchy.places)
        })
        .collect();
    descriptors.insert(1, records::boot_record(catalog));
    descriptors.push(records::terminator());
    file.write_all_at(&descriptors.concat(), u64::from(DESCRIPTORS) * SECTOR)
}

fn write_directories(file: &File, tree: &FileTree, hierarchy: &Hierarchy) -> io::Result<()> {
    let Hierarchy { names, places, .. } = hierarchy;
    if let NameScheme::RockRidge(sector) = names {
        file.write_all_at(&records::declaration_bytes(), u64::from(*sector) * SECTOR)?;
    }
    for (sector, is_little) in hierarchy.path_tables.into_iter().zip([true, false]) {
        let table = records::path_table(tree, *names, places, is_little);
        file.write_all_at(&table, u64::from(sector) * SECTOR)?;
    }
    for node in tree.directories() {
        let bytes = records::directory(tree, *names, node, places);
        file.write_all_at(&bytes, u64::from(places.sectors[node]) * SECTOR)?;
    }
    Ok(())
}

fn write_files(file: &File, tree: &FileTree, sectors: &[u32]) -> io::Result<()> {
    for (node, entry) in tree.0.iter().enumerate() {
        let start = u64::from(sectors[node]) * SECTOR;
        for (offset, bytes) in entry.data.iter().flat_map(|data| &data.parts) {
            file.write_all_at(bytes, start + offset)?;
        }
    }
    Ok(())
}

fn files(tree: &FileTree, sectors: &[u32]) -> std::collections::BTreeMap<String, (u64, u64)> {
    tree.0
        .iter()
        .enumerate()
        .filter_map(|(node, entry)| {
            let data = entry.data.as_ref()?;
            let start = u64::from(sectors[node]) * SECTOR;
            Some((tree.path(node), (start, data.length)))
        })
        .collect()
}
