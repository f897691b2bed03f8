// SPDX-License-Identifier: Apache-2.0
// A .NET program that says what its stacks may look like, then runs, for tests/script/judge.py; C# as mcs of mono compiles it.
//
// usage: Calls.exe SECONDS [CASE...]
//
// Prints a line "frame NAME 0 0 CALLER..." for each function, with whole names; blanks stand as _; no line is known without a file with
// lines. "*": anybody calls it. No method may be inlined, as nothing in memory tells of that, and no call is the last thing of its caller.
// Up to .NET 8 handlers of exceptions run above the frames that raised them.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

public static class Calls
{
    static readonly string[] truth = {
        "Spin *",
        "Leaf Down", "Down Down UseDeep", "UseDeep Go",
        "Once UseTiny", "UseTiny Go",
        "Square.Area ViaInterface", "Circle.Area ViaInterface", "ViaInterface UseShapes", "UseShapes Go",
        "Raised Raised Caught", "Caught UseException Raised Caught", "Finally Caught UseException", "UseException Go",
        "UseLambda Go", "UseLambda.(lambda) *", "UseClosure Go", "UseClosure.(lambda) *",
        "UseLinq Go", "UseLinq.(lambda) *",
        "Order.Compare *", "UseSort Go",
        "Box<T>..ctor UseGenerics", "Square..ctor UseShapes", "Circle..ctor UseShapes", "Base..ctor *", "Derived..ctor UseVirtual",
        "Order..ctor UseSort", "Box<T>.Get UseGenerics", "Box<T>.Map<U> UseGenerics", "Twice<T> UseGenerics", "UseGenerics Go", "Own.GetHashCode *",
        "Later *", "UseAsync Go", "Numbers *", "UseIterator Go",
        "Many UseArguments", "Wide UseArguments", "OnStack UseArguments", "UseArguments Go",
        "Reflected *", "UseReflection Go",
        "UseOsr Go", "UseMemory Go", "UseThread Go", "Worker *", "UseThread.(lambda) *",
        "Base.Virtual UseVirtual", "Derived.Virtual UseVirtual", "UseVirtual Go",
        "Filtered UseFilter", "UseFilter Go UseFilter",
        "Go Main", "Main *",
    };

    static long end;
    static volatile int sink;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Spin(int ms)
    {
        long until = DateTime.UtcNow.Ticks + ms * 2000L;
        int n = 0;
        while (DateTime.UtcNow.Ticks < until)
            for (int i = 0; i < 300; i++)
                n += i * i ^ n;
        sink += n;
        return n;
    }

    // --- deep ---
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Leaf() { int n = Spin(5); return n + 1; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Down(int n) { int r = n > 0 ? Down(n - 1) : Leaf(); return r + 1; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void UseDeep() { sink += Down(500); }

    // --- short calls ---
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Once(int x) { return x * 31 + (x >> 3); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void UseTiny()
    {
        int n = 0;
        for (int i = 0; i < 200000; i++)
            n += Once(i);
        sink += n;
    }

    // --- many implementations ---
    interface IShape { int Area(int n); }
    class Square : IShape
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public int Area(int n) { return (n & 2047) == 0 ? Spin(1) + 1 : n * 3; }
    }
    class Circle : IShape
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public int Area(int n) { return (n & 2047) == 1 ? Spin(1) + 1 : n * 5; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int ViaInterface(IShape s, int n) { int a = s.Area(n); return a + 1; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void UseShapes()
    {
        IShape[] shapes = { new Square(), new Circle() };
        for (int n = 0; n < 50000; n++)
            sink += ViaInterface(shapes[n & 1], n);
    }

    class Base
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public virtual int Virtual(int n) { return (n & 4095) == 0 ? Spin(1) + 1 : n; }
    }
    class Derived : Base
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public override int Virtual(int n) { return (n & 4095) == 1 ? Spin(1) + 1 : n * 2; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void UseVirtual()
    {
        Base[] all = { new Base(), new Derived() };
        for (int n = 0; n < 50000; n++)
            sink += all[n & 1].Virtual(n);
    }

    // --- exceptions ---
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Raised(int n)
    {
        if (n == 0) {
            Spin(2);
            throw new InvalidOperationException("to be caught");
        }
        int r = Raised(n - 1);
        return r + 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Finally() { sink += Spin(1); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Caught(int n)
    {
        try {
            try {
                int r = Raised(n);
                return r + 1;
            } finally {
                Finally();
                Spin(1);
            }
        } catch (InvalidOperationException) {
            int r = Spin(2);
            return r + 1;
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void UseException()
    {
        for (int i = 0; i < 5; i++)
            sink += Caught(i);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Filtered(int n) { int r = Spin(1); return r + n != 12345; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void UseFilter()
    {
        for (int i = 0; i < 3; i++)
            try {
                throw new ArgumentException();
            } catch (ArgumentException) when (Filtered(i)) {
                sink += Spin(1);
            }
    }

    // --- lambdas, closures, LINQ ---
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void UseLambda() { Func<int, int> f = x => { int r = Spin(2); return r + x; }; sink += f(1); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void UseClosure() { int y = sink; Func<int, int> f = x => { int r = Spin(2); return r + x + y; }; sink += f(1); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void UseLinq() { sink += Enumerable.Range(0, 4).Select(x => { int r = Spin(1); return r + x; }).Sum(x => x & 1); }

    // --- through the library and back ---
    class Order : IComparer<int>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public int Compare(int a, int b)
        {
            if ((a ^ b) % 16 == 1)
                Spin(1);
            return a.CompareTo(b);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void UseSort()
    {
        int[] numbers = new int[200];
        for (int i = 0; i < numbers.Length; i++)
            numbers[i] = i * 7919 % 200;
        Array.Sort(numbers, new Order());
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Reflected(int ms) { int r = Spin(ms); return r + 1; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void UseReflection() { sink += (int)typeof(Calls).GetMethod("Reflected").Invoke(null, new object[] { 2 }); }

    // --- generics ---
    struct Own
    {
        public int Value;
        [MethodImpl(MethodImplOptions.NoInlining)]
        public override int GetHashCode() { return Value % 64 == 0 ? Spin(1) + 1 : Value; }
        public override bool Equals(object o) { return o is Own && ((Own)o).Value == Value; }
    }
    class Box<T>
    {
        readonly T value;
        public Box(T v) { value = v; }
        [MethodImpl(MethodImplOptions.NoInlining)]
        public T Get() { Spin(1); return value; }
        [MethodImpl(MethodImplOptions.NoInlining)]
        public U Map<U>(U u) { Spin(1); return u; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static T Twice<T>(T v) { Spin(1); return v; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void UseGenerics()
    {
        sink += new Box<int>(1).Get() + new Box<string>("ab").Get().Length + new Box<Own>(new Own()).Get().Value;
        sink += new Box<string>("c").Map(3) + new Box<int>(4).Map("de").Length + Twice(5) + Twice("f").Length;
        var d = new Dictionary<Own, int>();
        for (int i = 0; i < 200; i++)
            d[new Own { Value = i }] = i;
        sink += d.Count;
    }

    // --- async, iterators ---
    [MethodImpl(MethodImplOptions.NoInlining)]
    static async Task<int> Later(int n)
    {
        int r = Spin(1);
        await Task.Yield();
        r += Spin(1);
        if (n > 0)
            r += await Later(n - 1);
        return r + 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void UseAsync() { sink += Later(3).Result; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static IEnumerable<int> Numbers(int n)
    {
        for (int i = 0; i < n; i++)
            yield return Spin(1) + i;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void UseIterator()
    {
        foreach (int i in Numbers(4))
            sink += i;
    }

    // --- frames of all sizes ---
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Many(int a, long b, double c, int d, long e, double f, int g, long h, double i, int j, long k, object l)
    {
        long sum = a + b + (long)c + d + e + (long)f + g + h + (long)i + j + k + l.GetHashCode();
        int r = Spin(2);
        return r + (int)sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Wide(long a, long b, long c, long d, long e, long f, long g, long h)
    {
        long x = a * b + c, y = d * e + f, z = g * h + a;
        for (int i = 0; i < 2000; i++) {
            x = x * 31 + y;
            y = y * 17 + z;
            z = z * 13 + x;
        }
        int r = Spin(1);
        return r + x + y + z + a + b + c + d + e + f + g + h;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static unsafe int OnStack(int n)
    {
        int* room = stackalloc int[n];
        for (int i = 0; i < n; i++)
            room[i] = i;
        int r = Spin(1);
        return r + room[n / 2];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void UseArguments()
    {
        sink += Many(1, 2, 3.5, 4, 5, 6.5, 7, 8, 9.5, 10, 11, "twelve");
        sink += (int)Wide(1, 2, 3, 4, 5, 6, 7, 8);
        sink += OnStack(100 + (sink & 255));
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void UseOsr()
    {
        long n = 0;
        for (int i = 0; i < 3000000; i++)
            n += i ^ n << 1;
        sink += (int)n + Spin(1);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void UseMemory()
    {
        var kept = new List<byte[]>();
        for (int i = 0; i < 5000; i++) {
            kept.Add(new byte[1000 + i % 100]);
            if (kept.Count > 100)
                kept.Clear();
        }
        sink += kept.Count;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Worker() { sink += Spin(2); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void UseThread()
    {
        var t = new Thread(() => { Worker(); Spin(1); });
        t.Start();
        sink += Spin(1);
        t.Join();
    }

    static readonly Dictionary<string, Action> cases = new Dictionary<string, Action> {
        { "deep", UseDeep }, { "tiny", UseTiny }, { "shapes", UseShapes }, { "virtual", UseVirtual }, { "exception", UseException },
        { "filter", UseFilter }, { "lambda", UseLambda }, { "closure", UseClosure }, { "linq", UseLinq }, { "sort", UseSort },
        { "reflection", UseReflection }, { "generics", UseGenerics }, { "async", UseAsync }, { "iterator", UseIterator },
        { "arguments", UseArguments }, { "osr", UseOsr }, { "memory", UseMemory }, { "thread", UseThread },
    };

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Go(string[] names)
    {
        do
            foreach (string name in names)
                cases[name]();
        while (DateTime.UtcNow.Ticks < end);
    }

    public static int Main(string[] args)
    {
        foreach (string line in truth) {
            string[] words = line.Split(' ');
            Console.Write("frame Calls." + words[0] + " 0 0");
            for (int i = 1; i < words.Length; i++)
                Console.Write(words[i] == "*" ? " *" : " Calls." + words[i]);
            Console.WriteLine();
        }
        Console.Out.Flush();
        end = DateTime.UtcNow.Ticks + int.Parse(args[0]) * 10000000L;
        Go(args.Length > 1 ? args.Skip(1).ToArray() : cases.Keys.ToArray());
        return 0;
    }
}
