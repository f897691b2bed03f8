-- SPDX-License-Identifier: Apache-2.0
-- A Lua program that says what its stacks may look like, then runs, for tests/script/judge.py. Lua 5.1 to 5.5 and LuaJIT.
--
-- usage: calls.lua SECONDS [CASE...]
--
-- Prints a line "frame NAME FIRST LAST CALLER..." for each of its functions: the lines its frames may be on, as the source has them, and
-- which may call it, directly or through C, as the comment before it says ("-- NAME <- CALLER, CALLER"); then "root NAME". A function
-- ends with an "end" that stands as far in as its first line. A case is a way of calling, a function use_CASE; all when none is named.

local unpack = table.unpack or unpack
local loads = loadstring or load
local uses, order = {}, {}

-- spin <- leaf, compare, replaced, raises, handler, index, add, less, concat, called, newindex, length, step, body, inner, outer
-- spin <- closed, tail_end, several, made, in_pcall, generated, failing, looped, deep_in_c, use_pcall, use_thread, use_wrap
-- spin <- use_many, use_closure, use_hook
local function spin(milliseconds)
  local stop = os.clock() + milliseconds / 1000
  local n = 0
  while os.clock() < stop do
    for i = 1, 300 do
      n = (n + i * i) % 1000003
    end
  end
  return n
end

-- --- deep ---

-- leaf <- down
local function leaf()
  local n = spin(10)
  return n
end

-- down <- down, use_deep
local function down(n)
  if n > 0 then
    return 1 + down(n - 1)
  end
  return 1 + leaf()
end

-- use_deep <- go
function uses.deep()
  return 1 + down(500)
end

-- deep_in_c <- deep_in_c, use_deep_c
local function deep_in_c(n)
  if n > 0 then
    local _, r = pcall(deep_in_c, n - 1)
    return r
  end
  return 1 + spin(10)
end

-- use_deep_c <- go
function uses.deep_c()
  return 1 + deep_in_c(60)
end

-- --- many short calls ---

-- tiny_one <- tiny_sum, use_tiny
local function tiny_one(x)
  return x + 1
end

-- tiny_sum <- use_tiny
local function tiny_sum(x)
  local y = tiny_one(x)
  return y + tiny_one(y)
end

-- use_tiny <- go
function uses.tiny()
  local n = 0
  for i = 1, 30000 do
    n = n + tiny_one(i)
    n = n + tiny_sum(i)
  end
  return n
end

-- use_loop <- go
function uses.loop()
  local n = 0
  for i = 1, 200000 do
    n = (n + i * i) % 1000003
  end
  return n
end

-- use_library <- go
function uses.library()
  local n, t = 0, {}
  for i = 1, 20000 do
    t[i] = "text" .. i
    n = n + math.sin(i) + #t[i] + math.fmod(i, 7.5)
    t["key" .. i % 300] = i
  end
  return n
end

-- --- through C and back ---

-- compare <- use_sort
local function compare(a, b)
  spin(1)
  return a < b
end

-- use_sort <- go
function uses.sort()
  local t = { 3, 1, 2, 5, 4 }
  table.sort(t, compare)
  return t
end

-- use_gsub <- go
function uses.gsub()
  -- replaced <- use_gsub
  local text = string.gsub("abc", "%a", function(c)
    spin(2)
    return c .. c
  end)
  return text
end

-- --- errors ---

-- raises <- raises, use_pcall, failing
local function raises(n)
  if n > 0 then
    return 1 + raises(n - 1)
  end
  spin(1)
  error("no")
end

-- use_pcall <- go
function uses.pcall()
  pcall(raises, 5)
  -- in_pcall <- use_pcall
  pcall(function()
    spin(2)
  end)
  return 1 + spin(1)
end

-- handler <- raises
local function handler(message)
  spin(2)
  return message
end

-- use_xpcall <- go
function uses.xpcall()
  -- failing <- use_xpcall
  xpcall(function()
    spin(1)
    raises(3)
  end, handler)
end

-- --- metamethods ---

local meta = {}

-- index <- use_meta
function meta.__index(_, key)
  spin(1)
  return key
end

-- newindex <- use_meta
function meta.__newindex()
  spin(1)
end

-- add <- use_meta
function meta.__add(a, _)
  spin(1)
  return a
end

-- less <- use_meta
function meta.__lt()
  spin(1)
  return true
end

-- concat <- use_meta
function meta.__concat(a, _)
  spin(1)
  return a
end

-- called <- use_meta
function meta.__call(_, n)
  return 1 + spin(n)
end

-- length <- use_meta
function meta.__len()
  return 1 + spin(1)
end

-- use_meta <- go
function uses.meta()
  local a, b = setmetatable({}, meta), setmetatable({}, meta)
  local n = a.nothing
  a.more = 1
  n = a + b
  n = a < b
  n = a .. "text"
  n = a(1)
  n = #a
  return n
end

-- --- iterators ---

-- step <- use_iterate
local function step(limit, i)
  spin(1)
  if i < limit then
    return i + 1
  end
end

-- use_iterate <- go
function uses.iterate()
  local n = 0
  for i in step, 3, 0 do
    n = n + i
  end
  return n
end

-- --- coroutines ---

-- inner <- body
local function inner(n)
  local r = spin(2)
  coroutine.yield(n)
  r = r + spin(2)
  return r
end

-- body <- use_thread
local function body(n)
  for i = 1, n do
    inner(i)
  end
  return 1 + spin(1)
end

-- use_thread <- go
function uses.thread()
  local co = coroutine.create(body)
  local n = 3
  while coroutine.resume(co, n) and coroutine.status(co) ~= "dead" do
    spin(1)
  end
end

-- use_wrap <- go
function uses.wrap()
  -- generated <- use_wrap
  for n in coroutine.wrap(function()
    for i = 1, 3 do
      spin(1)
      coroutine.yield(i)
    end
  end) do
    spin(n)
  end
end

-- outer <- use_nested
local function outer()
  -- visited <- outer
  local co = coroutine.wrap(function()
    local _, n = pcall(leaf_of_nested, 2)
    coroutine.yield(n)
    -- looped <- visited
    table.sort({ 2, 1 }, function(a, b)
      spin(2)
      return a < b
    end)
  end)
  co()
  spin(1)
  co()
end

-- leaf_of_nested <- visited
function leaf_of_nested(n)
  local m = n + nested_again(n)
  return m
end

-- nested_again <- leaf_of_nested
function nested_again(n)
  local stop, m = os.clock() + 0.002, n
  while os.clock() < stop do
    m = m + 1
  end
  return m
end

-- use_nested <- go
function uses.nested()
  local co = coroutine.wrap(outer)
  co()
end

-- use_many <- go
function uses.many()
  for i = 1, 300 do
    -- short <- use_many
    local co = coroutine.wrap(function(n)
      local m = n
      for k = 1, 50 do
        m = (m * k) % 97
      end
      return m
    end)
    co(i)
  end
  return 1 + spin(1)
end

-- --- closures, tail calls, arguments, made code ---

-- use_closure <- go
function uses.closure()
  local n = 2
  -- closed <- use_closure
  local f = function()
    local m = spin(n)
    return m
  end
  f()
  return 1 + spin(1)
end

-- tail_end <- use_tail
local function tail_end(n)
  local m = spin(n)
  return m
end

-- tail_start <- use_tail
local function tail_start(n)
  local m = n * 2
  return tail_end(m)
end

-- use_tail <- go
function uses.tail()
  local n = tail_start(2)
  return n
end

-- several <- several, use_vararg
local function several(n, ...)
  local list = { ... }
  if n > 0 then
    return 1 + several(n - 1, n, unpack(list))
  end
  return 1 + spin(#list)
end

-- use_vararg <- go
function uses.vararg()
  return 1 + several(4)
end

-- made <- use_load
function made(n)
  local m = spin(n)
  return m
end

-- use_load <- go
function uses.load()
  local f = loads("local n = made(2)\nreturn n + made(1)")
  f()
  f = loads("return function(n) local m = made(n) return m end", "=made up")()
  f(2)
end

-- use_hook <- go
function uses.hook()
  -- hook <- use_hook, spin
  debug.sethook(function()
    debug.sethook()
    local stop = os.clock() + 0.003
    while os.clock() < stop do
    end
  end, "", 100)
  spin(2)
  debug.sethook()
end

-- use_gc <- go
function uses.gc()
  for i = 1, 20 do
    -- gc <- *
    setmetatable({ i }, { __gc = function()
      local stop = os.clock() + 0.0005
      while os.clock() < stop do
      end
    end })
  end
  collectgarbage()
end

-- use_errors <- go
function uses.errors()
  for i = 1, 200 do
    -- thrown <- use_errors
    pcall(function(n)
      local m = n * 2
      error({ m })
    end, i)
  end
end

-- --- the truth ---

local path = string.match(debug.getinfo(1, "S").source, "^@(.*)")

-- NAME, FIRST and LAST of the function on line number @i of @lines.
local function extent(lines, i)
  local indent = string.match(lines[i], "^%s*")
  for k = i + 1, #lines do
    if string.sub(lines[k], 1, #indent + 3) == indent .. "end" then
      return k
    end
  end
end

local function tell()
  local lines, callers, names, found = {}, {}, {}, {}
  for line in io.lines(path) do
    lines[#lines + 1] = line
  end
  for i, line in ipairs(lines) do
    local name, list = string.match(line, "^%s*%-%- ([%w_]+) <%- (.*)$")
    if name then
      if not callers[name] then
        callers[name] = {}
        found[#found + 1] = name
      end
      for caller in string.gmatch(list, "[%w_%*]+") do
        table.insert(callers[name], caller)
      end
      if string.match(lines[i + 1], "function") then
        names[name] = { i + 1, extent(lines, i + 1) }
      end
    end
  end
  local function written(name)
    if name == "*" then
      return name
    elseif name == "main" then
      return "main_chunk_" .. path
    end
    return names[name] and ("function_" .. path .. ":" .. names[name][1])
  end
  for _, name in ipairs(found) do
    local words = { "frame", written(name), names[name][1], names[name][2] }
    for _, caller in ipairs(callers[name]) do
      table.insert(words, written(caller))
    end
    print(table.concat(words, " "))
  end
  print("root main_chunk_" .. path)
  io.stdout:flush()
end

local cases = { "deep", "deep_c", "tiny", "loop", "library", "sort", "gsub", "pcall", "xpcall", "meta", "iterate", "thread", "wrap", "nested",
  "many", "closure", "tail", "vararg", "load", "hook", "gc", "errors" }

-- go <- main
local function go(seconds, wanted)
  local stop = os.time() + seconds
  while os.time() < stop do
    for i = 1, #wanted do
      uses[wanted[i]]()
    end
  end
end

tell()
local wanted = { unpack(arg, 2) }
go(tonumber(arg[1]), #wanted > 0 and wanted or cases)
