#!/bin/bash
# Finds which of the prepared network configurations is this machine's, by the hardware addresses of its NICs, puts
# the NICs' real names into it and has it applied.
set -euo pipefail

prepared=/etc/assisted/network
applied=/etc/nmstate
firstboot=/etc/coreos-firstboot-network

nics() {
    for nic in /sys/class/net/*; do
        # Bonds, bridges and the like have no device.
        if [ -e "$nic/device" ]; then
            basename "$nic"
        fi
    done
}

# NICs get their final names while drivers load: wait until nothing has changed for 3 s, at most 30 s.
wait_for_names() {
    local before now quiet=0
    before=$(nics)
    for _ in $(seq 30); do
        sleep 1
        now=$(nics)
        if [ "$now" = "$before" ]; then
            quiet=$((quiet + 1))
        else
            quiet=0
        fi
        [ "$quiet" -ge 3 ] && return
        before=$now
    done
}

# Some NICs appear long after the others, where the drivers of their cards load firmware.
sleep "${DISCOVERY_DELAY_SECONDS:-0}"
wait_for_names

declare -A nic_of
for nic in $(nics); do
    address=$(cat "/sys/class/net/$nic/address")
    nic_of["${address^^}"]=$nic
done

for host in "$prepared"/host*; do
    mine=no
    to_mark=()
    to_name=()
    index=0
    while IFS='=' read -r address logical; do
        nic=${nic_of["${address^^}"]:-}
        [ -n "$nic" ] || continue
        mine=yes
        # By way of a mark: one NIC's real name may be another one's logical name.
        to_mark+=(-e "s/\\b$logical\\b/@nic$index@/g")
        to_name+=(-e "s/@nic$index@/$nic/g")
        index=$((index + 1))
    done < "$host/mac_interface.ini"
    [ "$mine" = yes ] || continue

    mkdir -p "$applied"
    for config in "$host"/*.yml; do
        sed "${to_mark[@]}" "$config" | sed "${to_name[@]}" > "$applied/$(basename "$config")"
    done
    nmstatectl service
    # The initrd hands its connections over to the live system in a folder of their own.
    if [ -e /etc/initrd-release ]; then
        mkdir -p "$firstboot"
        cp /etc/NetworkManager/system-connections/* "$firstboot"
        /usr/sbin/coreos-copy-firstboot-network
    fi
    exit 0
done

echo "no prepared network configuration is for this machine" >&2
