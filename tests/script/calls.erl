%% SPDX-License-Identifier: Apache-2.0
%% An Erlang program that says what its stacks may look like, then runs, for tests/script/judge.py. OTP 25 and later.
%%
%%   erl -noshell -s calls main SECONDS [CASE...]
%%
%% Prints a line "frame NAME FIRST LAST CALLER..." for each of its functions: the lines its frames may be on, and the functions it may
%% be called by, directly or through the library. A case is a way of calling; all of them when none is named. A call in tail position
%% leaves no frame, so callers have something to do behind their calls.
-module(calls).
-compile(nowarn_unused_function).
-compile({no_auto_import, [apply/1]}).
-export([main/1, leaf/1, exported/1]).

%% --- the end of all chains ---
turn(0, X) -> X;
turn(N, X) -> turn(N - 1, (X * 31 + N) band 16#ffffff).

spin(N) -> turn(N, 0) + 1.

%% --- deep ---
leaf(N) -> spin(N) + 1.

mid(N) ->
    A = leaf(N),
    A +
        leaf(N).

plain() -> mid(20000) + 1.

down(0) -> leaf(50000) + 1;
down(N) ->
    down(N - 1) + 1.

deep() -> down(500) + 1.

%% --- funs, and the library calling back ---
each() ->
    lists:foreach(fun(N) -> spin(N * 20) + 1 end, lists:seq(40, 80)),
    ok.

mapped() ->
    L = lists:map(fun(N) -> spin(N + 1000) + 1 end, lists:seq(1, 30)),
    length(L) + 1.

folded() ->
    lists:foldl(fun(N, Sum) -> Sum + spin(N + 1000) end, 0, lists:seq(1, 30)) + 1.

sorted() ->
    L = lists:sort(fun(A, B) -> spin(500) > 0 andalso A =< B end, [5, 3, 9, 1, 7, 4, 8, 2, 6]),
    hd(L) + 1.

nested() ->
    Inner = fun(N) -> spin(N) + 1 end,
    Outer = fun(N) -> Inner(N) + Inner(N + 1) + 1 end,
    Outer(5000) + 1.

listed() ->
    L = [spin(N * 20) + 1 || N <- lists:seq(40, 80), N rem 3 =/= 0],
    length(L) + 1.

referred() ->
    F = fun leaf/1,
    G = fun calls:exported/1,
    F(20000) + G(20000) + 1.

exported(N) -> spin(N) + 2.

applied() ->
    apply(calls, leaf, [20000]) + erlang:apply(calls, exported, [20000]) + 1.

%% --- exceptions ---
thrower(0) -> throw(spin(20000) + 1);
thrower(N) -> thrower(N - 1) + 1.

thrown() ->
    try thrower(10) of
        X -> X + 1
    catch
        throw:X -> handled(X) + 1
    after
        finished(20000)
    end.

handled(_) -> spin(20000) + 1.

finished(N) -> spin(N) + 1.

caught() ->
    case catch failing(10000) of
        {'EXIT', _} -> handled(1) + 1;
        X -> X
    end.

failing(N) ->
    M = spin(N),
    M / (M - M) + 1.

matched() ->
    try unmatched(spin(10000)) + 1
    catch error:{badmatch, _} -> handled(2) + 1
    end.

unmatched(N) ->
    {_, X} = list_to_tuple([N]),
    X + 1.

%% --- processes ---
worker(Parent) ->
    receive
        {work, N} ->
            Parent ! {done, self(), spin(N)},
            worker(Parent);
        stop -> ok
    after 5000 -> ok
    end.

started(Parent) -> spawn(fun() -> _ = worker(Parent), exit(normal) end).

messages() ->
    Self = self(),
    Pids = [started(Self) || _ <- lists:seq(1, 20)],
    [Pid ! {work, 1000} || _ <- lists:seq(1, 5), Pid <- Pids],
    collect(100),
    [Pid ! stop || Pid <- Pids],
    ok.

collect(0) -> ok;
collect(N) ->
    receive {done, _, X} -> weigh(X) end,
    collect(N - 1).

weigh(X) -> spin(X band 1023) + 1.

%% --- what the emulator's own functions do ---
bifs() ->
    L = lists:seq(1, 500),
    T = ets:new(t, [set]),
    [ets:insert(T, {N, N}) || N <- lists:seq(1, 200)],
    [ets:lookup(T, N) || N <- lists:seq(1, 200)],
    ets:delete(T),
    R = lists:reverse(L),
    B = term_to_binary(R),
    erlang:md5(B),
    R = binary_to_term(B),
    M = maps:from_list([{N, N} || N <- L]),
    length(maps:keys(M)) + 1.

binaries() ->
    B = << <<(N band 255)>> || N <- lists:seq(1, 500) >>,
    sum(B, 0) + byte_size(<<B/binary, B/binary>>) + 1.

sum(<<N, Rest/binary>>, Sum) -> sum(Rest, Sum + N);
sum(<<>>, Sum) -> Sum.

numbers() ->
    big(120) rem 1000007 + 1.

big(0) -> 1;
big(N) -> N * big(N - 1).

%% --- much garbage, with a stack on top of it ---
garbage() -> heaped(100, []) + 1.

heaped(0, L) -> length(L) + 1;
heaped(N, L) ->
    M = [{N, K, [K, K]} || K <- lists:seq(1, 50)],
    heaped(N - 1, [length(M) | L]) + 1.

collected() ->
    erlang:garbage_collect(),
    spin(5000) + 1.

%% --- code that is loaded anew as fast as it can be: the same places have one function, then the other ---
source(Name) ->
    Inner = list_to_atom(atom_to_list(Name) ++ "_inner"),
    F = fun(Tokens) -> {ok, T, _} = erl_scan:string(Tokens), {ok, X} = erl_parse:parse_form(T), X end,
    Text = atom_to_list(Name),
    [F("-module(again)."), F("-file(\"again.erl\", 1)."), F("-export([" ++ Text ++ "/1])."),
     F(Text ++ "(N) -> " ++ atom_to_list(Inner) ++ "(N) + 1."),
     F(atom_to_list(Inner) ++ "(N) -> case N of 0 -> 1; _ -> " ++ Text ++ "_leaf(N, 0) + " ++ atom_to_list(Inner) ++ "(N div 2) end."),
     F(Text ++ "_leaf(N, X) -> case N of 0 -> X; _ -> " ++ Text ++ "_leaf(N - 1, (X * 31 + N) band 16#ffffff) end.")].

made(Name) ->
    {ok, again, Binary} = compile:forms(source(Name), []),
    Binary.

reload(Odd, Even) ->
    loaded(Odd, fun() -> again:odd(100000) + 1 end),
    loaded(Even, fun() -> again:even(100000) + 1 end),
    ok.

loaded(Binary, Run) ->
    code:purge(again),
    {module, again} = code:load_binary(again, "again.erl", Binary),
    Run() + 1.

%% --- the program ---
cases() ->
    Odd = made(odd),
    Even = made(even),
    [{plain, fun plain/0}, {deep, fun deep/0}, {each, fun each/0}, {mapped, fun mapped/0}, {folded, fun folded/0},
     {sorted, fun sorted/0}, {nested, fun nested/0}, {listed, fun listed/0}, {referred, fun referred/0}, {applied, fun applied/0},
     {thrown, fun thrown/0}, {caught, fun caught/0}, {matched, fun matched/0}, {messages, fun messages/0}, {bifs, fun bifs/0},
     {binaries, fun binaries/0}, {numbers, fun numbers/0}, {garbage, fun garbage/0}, {collected, fun collected/0},
     {reload, fun() -> reload(Odd, Even) end}].

%% Who may call. What the compiler makes of a function's funs and comprehensions may call, and be called, where the function may.
callers() ->
    [{"turn/2", ["spin/1"]},
     {"spin/1", ["leaf/1", "each/0", "mapped/0", "folded/0", "sorted/0", "nested/0", "listed/0", "exported/1", "thrower/1", "handled/1",
                 "finished/1", "failing/1", "matched/0", "worker/1", "weigh/1", "collected/0"]},
     {"leaf/1", ["mid/1", "down/1", "referred/0", "applied/0"]},
     {"mid/1", ["plain/0"]}, {"plain/0", ["all/1"]}, {"down/1", ["down/1", "deep/0"]}, {"deep/0", ["all/1"]},
     {"each/0", ["all/1"]}, {"mapped/0", ["all/1"]}, {"folded/0", ["all/1"]}, {"sorted/0", ["all/1"]}, {"nested/0", ["all/1"]},
     {"listed/0", ["all/1"]}, {"referred/0", ["all/1"]}, {"exported/1", ["referred/0", "applied/0"]}, {"applied/0", ["all/1"]},
     {"thrower/1", ["thrower/1", "thrown/0"]}, {"thrown/0", ["all/1"]}, {"handled/1", ["thrown/0", "caught/0", "matched/0"]},
     {"finished/1", ["thrown/0"]}, {"caught/0", ["all/1"]}, {"failing/1", ["caught/0"]}, {"matched/0", ["all/1"]},
     {"unmatched/1", ["matched/0"]}, {"worker/1", ["started/1"]}, {"started/1", ["messages/0", "*"]}, {"messages/0", ["all/1"]},
     {"collect/1", ["messages/0"]}, {"weigh/1", ["collect/1"]},
     {"bifs/0", ["all/1"]}, {"binaries/0", ["all/1"]}, {"sum/2", ["binaries/0"]}, {"numbers/0", ["all/1"]}, {"big/1", ["big/1", "numbers/0"]},
     {"garbage/0", ["all/1"]}, {"heaped/2", ["heaped/2", "garbage/0"]}, {"collected/0", ["all/1"]},
     {"reload/2", ["all/1", "cases/0", "loaded/2"]}, {"loaded/2", ["reload/2"]}, {"all/1", ["run/2"]}, {"run/2", ["main/1"]}, {"main/1", ["*"]},
     {"made/1", ["cases/0"]}, {"source/1", ["made/1"]}, {"cases/0", ["main/1", "all/1"]}].

%% The functions that the compiler made of @Name's, as they are shown: "-f/1-fun-0-"/2 is f/1-fun-0/2.
made_of(Name) ->
    [readable(F) ++ "/" ++ integer_to_list(A) || {F, A} <- calls:module_info(functions), lists:prefix("-" ++ Name ++ "-", atom_to_list(F))].

readable(F) ->
    string:replace(lists:droplast(tl(atom_to_list(F))), "$^", "-").

%% The lines of each function: from its name at a line's start to the next line that ends with a full stop.
lines() ->
    {ok, Text} = file:read_file("calls.erl"),
    lines(binary:split(Text, <<"\n">>, [global]), 1, none, #{}).

lines([], _, _, Found) -> Found;
lines([Line | Rest], N, none, Found) ->
    case re:run(Line, "^([a-z_]+)\\(", [{capture, [1], list}]) of
        {match, [Name]} -> lines([Line | Rest], N, {Name, N}, Found);
        nomatch -> lines(Rest, N + 1, none, Found)
    end;
lines([Line | Rest], N, {Name, First}, Found) ->
    case re:run(Line, "\\.$") of
        nomatch -> lines(Rest, N + 1, {Name, First}, Found);
        _ -> {Start, _} = maps:get(Name, Found, {First, N}),
             lines(Rest, N + 1, none, Found#{Name => {Start, N}})
    end.

tell() ->
    Lines = lines(),
    [begin
         [Own | _] = string:split(Name, "/"),
         {First, Last} = maps:get(Own, Lines),
         Made = made_of(Name),
         All = lists:append([[C | made_of(C)] || C <- Callers]),
         tell(Name, First, Last, All),
         [tell(M, First, Last, [Name | Made] ++ [C || C <- Callers, C =:= "*" orelse lists:member(C, ["loaded/2", "all/1"])]) || M <- Made]
     end || {Name, Callers} <- callers()],
    [io:format("frame again:~s 1 1 ~s~n", [Name, lists:join(" ", Callers)]) ||
        {Name, Callers} <- [{"odd/1", [full(M) || M <- made_of("reload/2")]}, {"odd_inner/1", ["again:odd/1", "again:odd_inner/1"]},
                            {"odd_leaf/2", ["again:odd_inner/1"]}, {"even/1", [full(M) || M <- made_of("reload/2")]},
                            {"even_inner/1", ["again:even/1", "again:even_inner/1"]}, {"even_leaf/2", ["again:even_inner/1"]}]].

tell(Name, First, Last, Callers) ->
    io:format("frame ~s ~b ~b ~s~n", [full(Name), First, Last, lists:join(" ", [full(C) || C <- Callers])]).

full("*") -> "*";
full(Name) -> ["calls:", Name].

all([]) -> ok;
all([{_, F} | Rest]) ->
    F(),
    all(Rest).

run(Cases, End) ->
    all(Cases),
    case erlang:monotonic_time(millisecond) < End of
        true -> run(Cases, End);
        false -> ok
    end.

main([Seconds | Names]) ->
    tell(),
    Cases = [C || {Name, _} = C <- cases(), Names =:= [] orelse lists:member(Name, Names)],
    run(Cases, erlang:monotonic_time(millisecond) + 1000 * list_to_integer(atom_to_list(Seconds))),
    halt().
