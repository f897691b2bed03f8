# SPDX-License-Identifier: Apache-2.0
# A Ruby program that says what its stacks may look like, then runs, for tests/script/judge.py. Ruby 2.5 and later.
#
# usage: calls.rb SECONDS [CASE...]
#
# Prints a line "frame NAME FIRST LAST CALLER..." for each of its methods and blocks: the lines its frames may be on, as the source
# has them, and what may call it, directly or through C, as the comment before it says ("NAME <- CALLER, CALLER"); the same for
# methods that are written in C ("C NAME <- CALLER"), which have no lines; then "root NAME". Blanks in names are printed as "_".
# A case is a way of calling, a method use_CASE; all of them when none is named.

# C Class#new <- Calls#use_sort, Calls#use_methods, Calls#use_fiber, Calls#inner_fiber, Calls#use_next, Calls#shown, Calls#use_define, Calls#use_missing, <main>
# C Thread.new <- block in Calls#use_threads
# C BasicObject#initialize <- Class#new, Calls#use_methods, Calls#use_define, Calls#use_missing, Calls#shown
# C Thread#initialize <- Thread.new
# C Fiber#initialize <- Class#new
# C Comparable#== <- Calls#use_rescue
class Calls
  # Calls#spin <- Calls#leaf, Calls#compare, block in Calls#use_times, block in Calls#use_each, block (2 levels) in Calls#use_each
  # Calls#spin <- block in Calls#use_gsub, block in Calls#use_inject, block in Calls#use_hash, block in Calls#use_fiber
  # Calls#spin <- block in Calls#use_next, block (2 levels) in Calls#use_threads, Calls#raises, rescue in Calls#use_rescue
  # Calls#spin <- ensure in Calls#use_rescue, block in Calls#use_closure, Counter#step, Counter.once, block in <class:Counter>
  # Calls#spin <- Counter#method_missing, Calls#use_eval, block in Calls#use_instance, block in Calls#use_catch, Calls#forked
  # Calls#spin <- Calls#shown, block in Calls#use_sort_by, Calls#taken, Calls#use_rescue, Text#to_s, <top (required)>
  # Calls#spin <- Calls#made_now, block in Calls#use_map, Calls#use_threads, Calls#use_fork, block in Calls#inner_fiber, Mixed#mixed
  def spin(milliseconds)
    stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + milliseconds / 1000.0
    n = 0
    while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
      i = 0
      while i < 300
        n += i * i & 255
        i += 1
      end
    end
    n
  end
  # C Process.clock_gettime <- Calls#spin, Object#main
  # C Kernel#instance_variable_get <- Calls#spin
  # C Integer#/ <- Calls#spin
  # C Integer#fdiv <- Calls#spin
  # C Float#+ <- Calls#spin
  # C Integer#+ <- Calls#spin, Calls#down
  # C Integer#& <- Calls#spin
  # C Integer#* <- Calls#spin
  # C Integer#< <- Calls#spin
  # C Float#< <- Calls#spin, Object#main

  # --- deep ---
  # Calls#leaf <- Calls#down
  def leaf
    spin(10)
  end

  # Calls#down <- Calls#down, Calls#use_deep
  def down(n)
    if n > 0
      down(n - 1) + 1
    else
      leaf
    end
  end

  # Calls#use_deep <- Object#main
  def use_deep
    down(400)
  end

  # --- blocks that C calls ---
  # Calls#use_times <- Object#main
  def use_times
    # block in Calls#use_times <- Integer#times
    3.times do
      spin(1)
    end
  end
  # C Integer#times <- Calls#use_times

  # Calls#use_each <- Object#main
  def use_each
    # block in Calls#use_each <- Array#each, Enumerable#each_with_index
    [1, 2].each_with_index do |n, i|
      spin(1)
      # block (2 levels) in Calls#use_each <- Array#each
      [n].each do |m|
        spin(m)
      end
    end
  end
  # C Array#each <- Calls#use_each, block in Calls#use_each, Enumerable#each_with_index, Enumerable#inject, Enumerable#sort_by
  # C Array#each <- Enumerator#each, Calls#use_sort_by, block in Calls#use_next, Object#main
  # C Enumerable#each_with_index <- Calls#use_each

  # Calls#use_map <- Object#main
  def use_map
    # block in Calls#use_map <- Array#map
    [1, 2].map { |n| spin(n) }
  end
  # C Array#map <- Calls#use_map

  # Calls#use_gsub <- Object#main
  def use_gsub
    # block in Calls#use_gsub <- String#gsub
    "abab".gsub(/a/) do |found|
      spin(2)
      found
    end
  end
  # C String#gsub <- Calls#use_gsub

  # Calls#use_inject <- Object#main
  def use_inject
    # block in Calls#use_inject <- Array#each, Enumerable#inject
    [1, 2, 3].inject do |a, b|
      spin(1)
      a + b
    end
  end
  # C Enumerable#inject <- Calls#use_inject

  # Calls#use_hash <- Object#main
  def use_hash
    # block in Calls#use_hash <- Hash#each
    { 1 => 2, 2 => 1 }.each do |key, value|
      spin(value + key)
    end
  end
  # C Hash#each <- Calls#use_hash

  # Calls#use_sort_by <- Object#main
  def use_sort_by
    # block in Calls#use_sort_by <- Array#each, Enumerable#sort_by
    [3, 1, 2].sort_by { |n| spin(1); -n }
  end
  # C Enumerable#sort_by <- Calls#use_sort_by
  # C Integer#-@ <- block in Calls#use_sort_by

  # Calls#compare <- Key#<=>
  def compare(a, b)
    spin(1)
    a <=> b
  end
  # C Integer#<=> <- Calls#compare

  # Calls#use_sort <- Object#main
  def use_sort
    [Key.new(3), Key.new(1), Key.new(2)].sort
  end
  # C Array#sort <- Calls#use_sort

  # --- fibers ---
  # Calls#inner_fiber <- block in Calls#use_fiber
  def inner_fiber
    # block in Calls#inner_fiber <- *
    inner = Fiber.new do
      spin(1)
      Fiber.yield 1
      spin(1)
    end
    inner.resume + inner.resume
  end

  # Calls#use_fiber <- Object#main
  def use_fiber
    # block in Calls#use_fiber <- *
    fiber = Fiber.new do
      spin(2)
      Fiber.yield inner_fiber
      spin(2)
    end
    fiber.resume + fiber.resume
  end
  # C Fiber#resume <- Calls#use_fiber, Calls#inner_fiber
  # C Fiber.yield <- block in Calls#use_fiber, block in Calls#inner_fiber

  # Calls#use_next <- Object#main
  def use_next
    # block in Calls#use_next <- Enumerator#each, Enumerator::Generator#each
    numbers = Enumerator.new do |out|
      spin(2)
      out << 1
      spin(2)
      out << 2
    end
    numbers.next + numbers.next
  end
  # C Enumerator#next <- Calls#use_next
  # C Enumerator#each <- *
  # C Enumerator::Generator#each <- Enumerator#each
  # C proc <- Enumerator::Generator#each
  # C RubyVM::FrozenCore.proc <- Enumerator#next
  # C Enumerator::Yielder#<< <- block in Calls#use_next
  # C Enumerator#initialize <- Class#new
  # C Enumerator::Yielder#initialize <- Class#new
  # C Enumerator::Generator#initialize <- Class#new

  # --- exceptions ---
  # Calls#raises <- Calls#raises, Calls#use_rescue
  def raises(n)
    if n > 0
      raises(n - 1)
    else
      spin(1)
      raise ArgumentError, "no"
    end
  end
  # C Kernel#raise <- Calls#raises
  # C Exception.exception <- Kernel#raise, Calls#raises
  # C Exception#initialize <- Exception.exception, Class#new
  # C Exception#exception <- Kernel#raise
  # C Exception#backtrace <- Kernel#raise, Calls#raises
  # C Exception#set_backtrace <- Kernel#raise
  # C Module#=== <- Calls#use_rescue, rescue in Calls#use_rescue

  # Calls#use_rescue <- Object#main
  # rescue in Calls#use_rescue <- Calls#use_rescue
  # ensure in Calls#use_rescue <- Calls#use_rescue
  def use_rescue
    raises(5)
  rescue ArgumentError
    spin(1)
  ensure
    spin(1)
  end

  # Calls#use_catch <- Object#main
  def use_catch
    # block in Calls#use_catch <- Kernel#catch
    catch(:done) do
      spin(1)
      throw :done
    end
  end
  # C Kernel#catch <- Calls#use_catch
  # C Kernel#throw <- block in Calls#use_catch

  # --- closures, methods ---
  # Calls#use_closure <- Object#main
  def use_closure
    n = 2
    # block in Calls#use_closure <- Calls#use_closure
    closed = lambda do
      spin(n)
    end
    closed.call
  end
  # C Kernel#lambda <- Calls#use_closure
  # C RubyVM::FrozenCore.lambda <- Calls#use_closure

  # Calls#taken <- Method#call
  def taken
    spin(1)
  end

  # Calls#use_methods <- Object#main
  def use_methods
    method(:taken).call
    counter = Counter.new
    counter.step
    counter.mixed
    Counter.once
    [counter].each(&:step)
    counter.public_send(:step)
  end
  # C Kernel#method <- Calls#use_methods
  # C Method#call <- Calls#use_methods
  # C Array#each <- Calls#use_methods
  # C Kernel#public_send <- Calls#use_methods

  # Calls#use_define <- Object#main
  def use_define
    Counter.new.defined
  end

  # Calls#use_missing <- Object#main
  def use_missing
    Counter.new.anything
  end

  # Calls#shown <- Object#main
  def shown
    "#{Text.new}"
    spin(1)
  end

  # Calls#use_eval <- Object#main, Kernel#eval, Calls#use_eval
  def use_eval
    eval("spin(1)\nspin(1)", binding, __FILE__, __LINE__)
  end
  # C Kernel#eval <- Calls#use_eval
  # C Kernel#binding <- Calls#use_eval

  # Calls#use_instance <- Object#main
  def use_instance
    calls = self
    # block in Calls#use_instance <- BasicObject#instance_eval
    "text".instance_eval do
      calls.spin(1)
    end
  end
  # C BasicObject#instance_eval <- Calls#use_instance

  # --- code that comes and goes ---
  # Calls#use_made <- Object#main
  def use_made
    self.class.class_eval("def made_now\n  spin(1)\nend", __FILE__, 1)
    made_now
    self.class.send(:remove_method, :made_now)
  end
  # C Module#class_eval <- Calls#use_made
  # C Module#remove_method <- Calls#use_made
  # C Module#method_added <- <class:Calls>, Calls#use_made
  # C Module#method_removed <- Module#remove_method
  # C Kernel#class <- Calls#use_made

  # Calls#use_load <- Object#main
  def use_load
    File.write("calls_loaded.rb", "$calls.spin(1)\n")
    load("./calls_loaded.rb")
  end
  # C IO.write <- Calls#use_load
  # C IO#set_encoding <- Kernel#load
  # C Kernel#load <- Calls#use_load
  # C File#initialize <- *

  # --- threads and children ---
  # Calls#use_threads <- Object#main
  def use_threads
    # block in Calls#use_threads <- Array#map
    # block (2 levels) in Calls#use_threads <- *
    threads = [1, 2].map { Thread.new { spin(20) } }
    spin(3)
    threads.each(&:join)
  end
  # C Array#map <- Calls#use_threads
  # C Array#each <- Calls#use_threads
  # C Thread#join <- Array#each, Calls#use_threads

  # Calls#forked <- Calls#use_fork
  def forked
    spin(20)
  end

  # Calls#use_fork <- Object#main
  def use_fork
    child = fork
    unless child
      forked
      exit!(0)
    end
    spin(3)
    Process.wait(child)
  end
  # C Kernel#fork <- Calls#use_fork
  # C Process._fork <- Kernel#fork
  # C Kernel#exit! <- Calls#use_fork
  # C Process.wait <- Calls#use_fork
end

class Key
  attr_reader :value

  # Key#initialize <- Class#new, Calls#use_sort
  def initialize(value)
    @value = value
  end

  # Key#<=> <- Array#sort
  def <=>(other)
    $calls.compare(value, other.value)
  end
end

module Mixed
  # Mixed#mixed <- Calls#use_methods
  def mixed
    $calls.spin(1)
  end
end

class Counter
  include Mixed

  # Counter#step <- Calls#use_methods, Array#each, Kernel#public_send
  def step
    $calls.spin(1)
  end

  # Counter.once <- Calls#use_methods
  def self.once
    $calls.spin(1)
  end

  # block in <class:Counter> <- Calls#use_define
  define_method(:defined) do
    $calls.spin(1)
  end

  # Counter#method_missing <- Calls#use_missing
  def method_missing(name, *arguments)
    $calls.spin(1)
  end

  # Counter#respond_to_missing? <- *
  def respond_to_missing?(*)
    true
  end
end

class Text
  # Text#to_s <- Calls#shown
  def to_s
    $calls.spin(1)
    "text"
  end
end

# Object#tell <- <main>
def tell
  lines = File.readlines(__FILE__).map(&:chomp)
  seen = {}
  lines.each_with_index do |line, i|
    match = line.match(/^( *)# (C )?([^" ][^"]*) <- ([^"]*)$/)
    next unless match
    first = i + 1
    first += 1 while lines[first] =~ /^ *#/
    indent = lines[first][/^ */]
    last = first
    last += 1 while lines[first].count("{") == lines[first].count("}") && lines[first] =~ /^ *(def|class|module)|do( \|.*\|)?$/ && lines[last] !~ /^#{indent}end/
    key = [match[3], match[2] ? 0 : first + 1]
    (seen[key] ||= [match[2] ? 0 : last + 1, []])[1].concat(match[4].split(", "))
  end
  seen.each do |(name, first), (last, callers)|
    puts "frame #{name.tr(" ", "_")} #{first} #{last} #{callers.map { |caller| caller.tr(" ", "_") }.join(" ")}"
  end
  puts "frame Calls#made_now 1 3 Calls#use_made", "frame Calls#use_made 1 3 Module#class_eval"
  puts "frame <top_(required)> 1 1 Kernel#load", "root <main>"
  $stdout.flush
end

$calls = Calls.new

# Object#main <- <main>
def main(seconds, cases)
  stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
    i = 0
    while i < cases.length
      $calls.send(cases[i])
      i += 1
    end
  end
end

tell
cases = Calls.instance_methods(false).grep(/^use_|^shown/)
cases &= ARGV.drop(1).map { |name| name == "shown" ? :shown : :"use_#{name}" } if ARGV[1]
main(ARGV[0].to_f, cases)
