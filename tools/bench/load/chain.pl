# SPDX-License-Identifier: Apache-2.0
# N different subs deep, the file's code included: chain.pl N
use strict;
use warnings;

my $depth = $ARGV[0];

sub f1 {
	my $x = 1;
	$x = ($x * 33) & 0xffff while 1;
}

eval join '', map { sprintf "sub f%d { my \$a = f%d(); return \$a }\n", $_, $_ - 1 } 2 .. $depth - 1;
no strict 'refs';
&{ "f" . ($depth - 1) }();
