# SPDX-License-Identifier: Apache-2.0
# N different methods deep, the file's code included: chain.rb N
depth = ARGV[0].to_i

def f1
  x = 1
  x = (x * 33) & 0xffff while true
end

eval((2...depth).map { |i| "def f#{i}\n  a = f#{i - 1}\n  a\nend\n" }.join)
send("f#{depth - 1}")
