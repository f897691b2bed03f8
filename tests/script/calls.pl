# SPDX-License-Identifier: Apache-2.0
# A Perl program that says what its stacks may look like, then runs, for tests/script/judge.py.
#
# usage: calls.pl SECONDS [CASE...]
#
# Prints a line "frame NAME FIRST LAST CALLER..." for each of its subs: the lines its frames may be on, as the source has them, and the
# subs that may call it, directly or through C, as the comment before it says ("called by"); then "root NAME". A case is a way of
# calling; all of them when none is named.
use strict;
use warnings;
no warnings qw(recursion void once);
use Config;
use Data::Dumper;
use List::Util qw(first reduce);
use Time::HiRes qw(time);

my $rang;
my @cases;

# called by: leaf compare by_number use_sort_block raised dies __ANON__ counted use_map use_grep keys_of
# called by: Counter::method Counter::DESTROY Counter::AUTOLOAD Number::plus Tied::FETCH
# called by: use_eval use_match handler jumped use_text made shown forked use_replace threaded
sub spin {
    my $end = time() + $_[0] / 1000;
    my $n = 0;
    while (time() < $end) {
        for my $i (1 .. 300) {
            $n += $i * $i;
        }
    }
    return $n;
}

# --- deep ---
# called by: down
sub leaf {
    return spin(10);
}

# called by: down use_deep
sub down {
    my $n = shift;
    if ($n) {
        return down($n - 1) + 1;
    }
    return leaf();
}

# called by: go
sub use_deep {
    return down(100);
}

# --- many short calls ---
# called by: tiny_two use_tiny
sub tiny_one {
    my $x = shift;
    return $x + 1;
}

# called by: use_tiny
sub tiny_two {
    my $x = shift;
    my $y = tiny_one($x) + tiny_one($x + 1);
    return $y;
}

# called by: go
sub use_tiny {
    my $n = 0;
    for my $i (1 .. 20000) {
        $n += tiny_one($i);
        $n += tiny_two($i);
    }
    return $n;
}

# --- through C and back ---
# called by: use_sort
sub by_number {
    spin(1);
    return $a <=> $b;
}

# called by: go
sub use_sort {
    my @sorted = sort by_number 3, 1, 2, 5, 4;
    return scalar @sorted;
}

# called by: go
sub use_sort_block {
    my @sorted = sort {
        spin(1);
        $a <=> $b
    } 3, 1, 2, 5, 4;
    return scalar @sorted;
}

# called by: use_sort_eval compare
sub dies {
    spin(1);
    die "no\n" if $_[0];
    return 1;
}

# called by: use_sort_eval
sub compare {
    my $order = $a <=> $b;
    eval {
        eval { dies(1) };
        dies(0);
    };
    spin(1);
    return $order;
}

# called by: go
sub use_sort_eval {
    my @sorted = sort compare 3, 1, 2;
    @sorted = sort { eval { dies($a) }; $a <=> $b } 1, 2;
    return scalar @sorted;
}

# called by: use_map
sub counted {
    return spin($_[0]);
}

# called by: go
sub use_map {
    return map { counted($_) + spin(1) } 1, 2;
}

# called by: go
sub use_grep {
    return grep { spin(2) > $_ } 1, 2;
}

# called by: go
sub use_first {
    my $found = first { spin(1) < 0 } 1 .. 3;
    return reduce { spin(1) + $a + $b } 1 .. 4;
}

# called by: use_keys
sub keys_of {
    spin(3);
    return [sort keys %{ $_[0] }];
}

# called by: go
sub use_keys {
    local $Data::Dumper::Sortkeys = \&keys_of;
    return Dumper({ one => 1, two => { three => 3 } });
}

# called by: go
sub use_match {
    my $n = 0;
    "aaab" =~ /^(?:a(?{ $n += spin(2) }))+b/;
    return $n;
}

# called by: go
sub use_replace {
    my $text = "abc";
    $text =~ s/([a-c])/spin(2) > 0 ? $1 : ""/ge;
    return $text;
}

# --- errors, closures, methods, made code ---
# called by: raised use_eval
sub raised {
    my $n = shift;
    return raised($n - 1) if $n;
    spin(3);
    die "no\n";
}

# called by: go
sub use_eval {
    eval { raised(5); 1 } or spin(1);
    return $@;
}

# called by: use_closure
my $closure = sub {
    return spin(3);
};

# called by: go
sub use_closure {
    return $closure->() + sub { spin(2) }->();
}

# called by: use_text
sub made {
    return spin(3);
}

# called by: go
sub use_text {
    return eval "made() + 1;\nmade();\n";
}

# called by: go
sub use_jump {
    return passed(3);
}

# called by: use_jump
sub jumped {
    return spin($_[0]);
}

# called by: use_jump
sub passed {
    goto &jumped;
}

# called by: go
sub use_signal {
    local $SIG{ALRM} = \&handler;
    $rang = 0;
    Time::HiRes::ualarm(2000);
    1 until $rang; # a slow machine's clock may come late
}

# called by: use_signal
sub handler {
    spin(4);
    $rang = 1;
}

# called by: go
sub use_warning {
    local $SIG{__WARN__} = \&shown;
    warn "yes";
}

# called by: use_warning
sub shown {
    spin(3);
}

package Counter;

# called by: use_method
sub method {
    my $self = shift;
    return main::spin(3);
}

# called by: use_auto
sub AUTOLOAD {
    return main::spin(3);
}

# called by: use_method use_auto use_overload
sub DESTROY {
    main::spin(1);
}

package Number;
use overload '+' => \&plus;

# called by: use_overload
sub plus {
    main::spin(2);
    return $_[0];
}

package Tied;

# called by: use_tie
sub TIESCALAR {
    return bless {}, shift;
}

# called by: use_tie
sub FETCH {
    return main::spin(3);
}

package main;

# called by: go
sub use_method {
    my $object = bless {}, "Counter";
    return $object->method;
}

# called by: go
sub use_auto {
    my $object = bless {}, "Counter";
    return $object->nothing_like_that;
}

# called by: go
sub use_overload {
    my $number = bless [], "Number";
    my $more = $number + 1;
    return 1;
}

# called by: go
sub use_tie {
    tie my $value, "Tied";
    my $n = $value + 1;
    return $n;
}

# called by: go
sub use_fork {
    my $child = fork();
    if (!$child) {
        forked();
        require POSIX;
        POSIX::_exit(0);
    }
    waitpid($child, 0);
}

# called by: use_fork
sub forked {
    return spin(20);
}

# called by: *
sub threaded {
    my @sorted = sort { spin(3); $a <=> $b } 2, 1, 3;
    return spin(10);
}

# called by: go
sub use_threads {
    return unless $Config{useithreads};
    require threads;
    my $thread = threads->create(\&threaded);
    $thread->join;
}

# --- the truth ---
# Subs end with a brace in the first column. A sub or block of code within another, which is called by that, is on one line.
# called by: pl
sub say_truth {
    open(my $source, "<", $0) or die "$0: $!";
    my ($package, $name, $first, @callers) = ("main");
    while (<$source>) {
        $package = $1 if /^package (\w+);/;
        push @callers, split(" ", $1) if /^# called by: (.*)/;
        if (/^sub (\w+) \{/) {
            ($name, $first) = ($1, $.);
        } elsif (/^my \$\w+ = sub \{/) {
            ($name, $first) = ("__ANON__", $.);
        } elsif ($name && /^\};?$/) {
            say_frame("${package}::$name", $first, $., @callers);
            ($name, @callers) = ();
        } elsif ($name && /sub \{|(?:first|reduce) \{|\(\?\{/) {
            say_frame("main::__ANON__", $., $., $name);
        }
    }
    say_frame("${_}::BEGIN", 1, $., "pl") for "main", "Number"; # of "use"
    print "root $0\n";
}

# called by: say_truth
sub say_frame {
    my ($name, $first, $last, @callers) = @_;
    print join(" ", "frame", $name, $first, $last, map { /^(?:\*|pl)$/ || /::/ ? $_ : "main::$_" } @callers), "\n";
}

# called by: pl
sub go {
    my ($seconds, @wanted) = @_;
    my $end = time() + $seconds;
    while (time() < $end) {
        for my $sub (@wanted) {
            $sub->();
        }
    }
}

$| = 1;
my ($seconds, @wanted) = @ARGV;
@cases = map { "use_$_" } qw(deep tiny sort sort_block sort_eval map grep first keys match replace eval closure text jump signal
    warning method auto overload tie fork threads);
@cases = map { "use_$_" } @wanted if @wanted;
my %subs;
{
    # While a sub is looked up by its name for the first time, as by sort, Perl itself says that it is at its first line.
    no strict "refs";
    %subs = map { $_ => \&{"main::$_"} } grep { /^\w+$/ && defined &{"main::$_"} } keys %main::;
}
say_truth();
go($seconds, @subs{@cases});
