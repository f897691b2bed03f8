// SPDX-License-Identifier: Apache-2.0
// A .NET program whose functions are called by the library in many ways; in each call it prints the files and lines of its callers as
// the runtime tells them (StackTrace), then stays there for some milliseconds, for judge_lines.py; C# as mcs of mono compiles it.
//
// usage: Lines.exe SECONDS
//
// Prints "stack FILE:LINE..." for each stack that it meets, innermost first, frames with a line alone, once. "STOP" stands where code
// that the runtime made calls: from there on .NET 8 does not tell lines.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading;
using System.Threading.Tasks;

public static class Lines
{
    static readonly HashSet<string> seen = new HashSet<string>();
    static volatile int sink;
    static long end;
    static int calls;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Spin(long us)
    {
        long until = Stopwatch.GetTimestamp() + us * Stopwatch.Frequency / 1000000;
        while (Stopwatch.GetTimestamp() < until)
            for (int i = 0; i < 300; i++)
                sink += i;
        sink++;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Call()
    {
        var trace = new StackTrace(1, true);
        var text = new StringBuilder("stack");
        for (int i = 0; i < trace.FrameCount; i++) {
            var f = trace.GetFrame(i);
            var method = f.GetMethod();
            if (method != null && method.DeclaringType != null && method.DeclaringType.FullName.Contains("MethodBaseInvoker")) {
                text.Append(" STOP");
                break;
            }
            if (f.GetFileName() == null || f.GetFileLineNumber() == 0)
                continue;
            text.Append(' ').Append(Path.GetFileName(f.GetFileName())).Append(':').Append(f.GetFileLineNumber());
        }
        string line = text.ToString();
        lock (seen)
            if (seen.Add(line))
                Console.WriteLine(line);
        calls++;
        Spin(4000);
    }

    class Order : IComparer<int>
    {
        public int Compare(int a, int b) { if (calls % 3 == 0) Call(); else calls++; return a - b; }
    }
    class Same : IEqualityComparer<string>
    {
        public bool Equals(string a, string b) { Call(); return a == b; }
        public int GetHashCode(string a) { Call(); return a.Length; }
    }
    class Key
    {
        public int v;
        public override int GetHashCode() { Call(); return v & 3; }
        public override bool Equals(object o) { Call(); return o is Key && ((Key)o).v == v; }
        public override string ToString() { Call(); return "k" + v; }
    }
    class Source : Stream
    {
        readonly MemoryStream inner;
        public Source(byte[] bytes) { inner = new MemoryStream(bytes); }
        public override bool CanRead { get { return true; } }
        public override bool CanSeek { get { return false; } }
        public override bool CanWrite { get { return true; } }
        public override long Length { get { return inner.Length; } }
        public override long Position { get { return inner.Position; } set { } }
        public override void Flush() { Call(); }
        public override int Read(byte[] b, int o, int n) { Call(); return inner.Read(b, o, Math.Min(n, 7)); }
        public override long Seek(long o, SeekOrigin s) { return 0; }
        public override void SetLength(long n) { }
        public override void Write(byte[] b, int o, int n) { Call(); }
    }

    static IEnumerable<int> Numbers(int n)
    {
        for (int i = 0; i < n; i++) {
            if (i % 4 == 0) Call();
            yield return i * 7 % 31;
        }
    }

    static async Task<int> Later(int depth)
    {
        await Task.Yield();
        Call();
        if (depth > 0)
            await Later(depth - 1);
        Call();
        return depth;
    }

    static void Go()
    {
        var list = Numbers(24).ToList();
        list.Sort(new Order());
        var array = list.ToArray();
        Array.Sort(array, new Order());
        Array.BinarySearch(array, 5, new Order());
        list.ForEach(x => { if (x == 3) Call(); });
        list.RemoveAll(x => { if (x == 4) Call(); return false; });
        list.ConvertAll(x => { if (x == 5) Call(); return x; });
        Numbers(9).Where(x => { if (x > 12) Call(); return true; }).Select(x => { if (x > 14) Call(); return x; }).OrderBy(x => { if (x == 7) Call(); return x; }).GroupBy(x => { if (x == 14) Call(); return x & 3; }).ToDictionary(g => { Call(); return g.Key; });
        Numbers(9).OrderByDescending(x => x, new Order()).ThenBy(x => x).First();
        Numbers(9).Aggregate(0, (a, b) => { if (b == 7) Call(); return a + b; });
        Numbers(5).Zip(Numbers(5), (a, b) => { if (a == 7) Call(); return a + b; }).Any(x => { if (x == 14) Call(); return false; });
        Numbers(8).Distinct().Skip(1).Take(5).Concat(Numbers(3)).Reverse().Sum(x => { if (x == 14) Call(); return x; });
        var words = new Dictionary<string, int>(new Same());
        words["a"] = 1; words["b"] = 2; words.Remove("b"); words.TryAdd2("c");
        var set = new HashSet<Key> { new Key { v = 1 }, new Key { v = 5 } };
        set.Contains(new Key { v = 5 });
        var tree = new SortedDictionary<int, int>(new Order());
        for (int i = 0; i < 9; i++) tree[i * 5 % 9] = i;
        tree.Remove(3);
        Regex.Replace("one two three", "[a-z]+", m => { Call(); return m.Value + "x"; });
        string.Format("{0} and {1,5}", new Key { v = 2 }, new Key { v = 3 });
        string.Join(",", new object[] { new Key { v = 2 }, "x" });
        new StringBuilder().Append(new Key { v = 4 }).AppendFormat("{0}", new Key { v = 4 });
        var bytes = Encoding.UTF8.GetBytes(string.Concat(Enumerable.Repeat("line of text\n", 6)));
        using (var r = new StreamReader(new Source(bytes), Encoding.UTF8, false, 16)) { r.ReadLine(); r.ReadToEnd(); }
        using (var w = new StreamWriter(new Source(bytes), Encoding.UTF8, 16)) { w.WriteLine("some text of some length"); w.Write(12345.678); w.Flush(); }
        new BufferedStream(new Source(bytes), 16).CopyTo(Stream.Null);
        new Lazy<int>(() => { Call(); return 1; }).Value.ToString();
        var local = new ThreadLocal<int>(() => { Call(); return 1; }); sink += local.Value;
        Parallel.For(0, 3, i => Call());
        Later(2).Wait();
        Task.Run(() => Call()).ContinueWith(t => Call()).Wait();
        var thread = new Thread(() => Call()); thread.Start(); thread.Join();
        using (new Timer(o => Call(), null, 0, Timeout.Infinite)) Thread.Sleep(8);
        AppDomain.CurrentDomain.GetAssemblies().Select(a => { if (calls % 5 == 0) Call(); calls++; return a; }).Count();
        try { list.ForEach(x => { throw new InvalidOperationException(); }); } catch (InvalidOperationException) { Call(); } finally { Call(); }
        try { Numbers(3).Select(x => { if (x == 7) throw new Exception("a"); return x; }).ToList(); } catch (Exception e) when (Filter(e)) { Call(); }
        Activator.CreateInstance(typeof(Made)); typeof(Made).GetMethod("M").Invoke(null, null);
        ((Action)(() => Call())).DynamicInvoke();
    }
    static bool Filter(Exception e) { Call(); return true; }
    static void TryAdd2(this Dictionary<string, int> d, string k) { if (!d.ContainsKey(k)) d.Add(k, 1); }
    public class Made { public Made() { Call(); } public static void M() { Call(); } }

    public static int Main(string[] args)
    {
        end = Stopwatch.GetTimestamp() + long.Parse(args[0]) * Stopwatch.Frequency;
        do Go(); while (Stopwatch.GetTimestamp() < end);
        Console.WriteLine("calls " + calls);
        return 0;
    }
}
