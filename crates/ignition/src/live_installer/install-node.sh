#!/bin/bash
# Writes the operating system of this live image with the configuration of a node to a disk, once.
set -euo pipefail

disk=@DISK@
mark=atoll-@MARK@
folder=$(mktemp -d)

fail() {
    echo "node not installed: $1" >&2
    exit 1
}

# The boot partition of an installed system. Its label is read from the disk: udev may lag behind.
boot_partition() {
    local name
    for name in $(lsblk --noheadings --list --paths --output NAME "$disk"); do
        if [[ $(blkid --probe --match-tag LABEL --output value "$name") == boot ]]; then
            echo "$name"
            return
        fi
    done
}

# Disks behind some controllers appear late.
for _ in {1..60}; do
    if lsblk "$disk" &>/dev/null; then
        break
    fi
    sleep 2
done
lsblk "$disk" &>/dev/null || fail "there is no disk $disk, only $(lsblk --nodeps --noheadings --paths --output NAME,SIZE,MODEL)"

# A boot partition that cannot be read is that of an older, damaged installation.
partition=$(boot_partition)
if [[ -n $partition ]] && mount -o ro "$partition" "$folder"; then
    is_installed=no
    if [[ -e $folder/$mark ]]; then
        is_installed=yes
    fi
    umount "$folder"
    if [[ $is_installed == yes ]]; then
        fail "$disk has been installed from this image; detach the image and restart, or make a new one to install again"
    fi
fi

coreos-installer install --ignition-file /etc/atoll/node.ign --copy-network "$disk"
udevadm settle

partition=$(boot_partition)
[[ -n $partition ]] || fail "$disk has no boot partition after the installation"
mount "$partition" "$folder"
touch "$folder/$mark"
umount "$folder"
