#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a test, in a mount namespace that was made for it, so that a planted bug cannot harm the machine's files: only $SHARD and
# other file systems than the root's can be written; what goes below /tmp, /usr/lib/debug and the home folder is lost.
#   sandbox.sh COMMAND...
set -e
mount --make-rprivate /
mkdir -p "$WORK/over"
mount -t tmpfs none "$WORK/over"
for dir in /usr/lib/debug "$HOME"; do
	if [ -d "$dir" ]; then
		mkdir -p "$WORK/over$dir/"{up,work}
		mount -t overlay overlay -o "lowerdir=$dir,upperdir=$WORK/over$dir/up,workdir=$WORK/over$dir/work" "$dir"
	fi
done
mount --bind "$SHARD" "$SHARD"
mkdir "$WORK/over/tmp"
mount -t tmpfs -o mode=1777 none "$WORK/over/tmp"
case $WORK in
/tmp/*) # stays where it is
	mkdir -p "$WORK/over$WORK"
	mount --bind "$WORK" "$WORK/over$WORK"
	;;
esac
mount --rbind "$WORK/over/tmp" /tmp
mount -o remount,bind,ro /
cd "$PWD" # the mount that is there now
if [ $$ = 1 ]; then
	"$@" # not as the first process, which inherits the children of those that end
else
	exec "$@"
fi
