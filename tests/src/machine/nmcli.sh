#!/bin/busybox sh
# nmcli connection up NAME: the first address, its gateway and the name servers of a keyfile.
[ "$2" = up ] || exit 0
file=/etc/NetworkManager/system-connections/$3.nmconnection
value() { sed -n "s/^$1=//p" "$file" | head -n 1; }
interface=$(value interface-name)
address=$(value address1)
ip address flush dev "$interface"
ip address add "${address%%,*}" dev "$interface"
ip route add default via "${address##*,}"
for server in $(value dns | tr ';' ' '); do echo "nameserver $server"; done >/etc/resolv.conf
