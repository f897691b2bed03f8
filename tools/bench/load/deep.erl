%% SPDX-License-Identifier: Apache-2.0
%% deep:main([DEPTH]): so many frames of one function, at whose end a loop runs for a moment, again and again.
-module(deep).
-export([main/1]).

main([Depth]) ->
	turn(list_to_integer(atom_to_list(Depth))).

turn(Depth) ->
	down(Depth),
	turn(Depth).

down(0) ->
	spin(20000, 1);
down(Depth) ->
	down(Depth - 1) + 1.

spin(0, N) ->
	N band 1;
spin(Turns, N) ->
	spin(Turns - 1, (N * 75 + 74) rem 65537).
