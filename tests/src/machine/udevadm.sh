#!/bin/busybox sh
# The database of udev, as far as lsblk reads it: properties of file systems.
mkdir -p /run/udev/data
for device in /sys/class/block/*; do
    {
        echo I:1
        blkid -o udev -p "/dev/${device##*/}" | sed 's/^/E:/'
    } >"/run/udev/data/b$(cat "$device/dev")"
done
