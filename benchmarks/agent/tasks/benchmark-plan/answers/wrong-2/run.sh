dotnet add package BenchmarkDotNet
dotnet run -c Release -- --filter "*Parse" --job Dry > benchmark.log 2>&1
dotnet run -c Release -- --filter "*Parse" --job Short > benchmark.log 2>&1
