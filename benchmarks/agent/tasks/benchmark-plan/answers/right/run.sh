dotnet add package BenchmarkDotNet
dotnet run -c Release -- --filter "*Parse" --job Dry --noOverwrite > benchmark.log 2>&1
dotnet run -c Release -- --filter "*Parse" --job Short --noOverwrite > benchmark.log 2>&1
